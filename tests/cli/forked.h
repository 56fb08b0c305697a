#pragma once

#include <optional>
#include <string>
#include <vector>

namespace posenc::testing {

/// Runs a program that is started once and then forked (fork_server.cpp), with the descriptors
/// `in`, `out` and `err`. Returns its wait status; nothing where that is not possible, and the
/// program has to be started: in a build with sanitizers, and after a change of the environment
/// that it may have read while it was loaded.
std::optional<int> run_forked(const std::vector<std::string>& command,
                              const std::vector<std::string>& environment, int in, int out,
                              int err);

}  // namespace posenc::testing
