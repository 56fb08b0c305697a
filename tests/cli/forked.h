#pragma once

#include <optional>
#include <string>
#include <vector>

namespace posenc::testing {

/// Runs a program that is started once and then forked (fork_server.cpp), with the descriptors
/// `in`, `out` and `err`. Returns its wait status, or nullopt if the caller has to start the
/// program itself: in a build with sanitizers, or if the environment that the program may have read
/// while loading has changed.
std::optional<int> run_forked(const std::vector<std::string>& command,
                              const std::vector<std::string>& environment, int in, int out,
                              int err);

}  // namespace posenc::testing
