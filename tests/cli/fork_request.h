#pragma once

#include <cstddef>

namespace posenc::testing {

/// The variable with the number of the socket that a program with fork_server.cpp listens to.
constexpr const char* kForkSocket = "POSENC_FORK_SOCKET";

/// Bytes of a request: strings, each with its end.
constexpr std::size_t kLongestRequest = 128 * 1024;

}  // namespace posenc::testing
