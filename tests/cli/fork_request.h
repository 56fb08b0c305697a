#pragma once

#include <cstddef>

namespace posenc::testing {

/// Environment variable with the descriptor of the socket on which fork_server.cpp listens.
constexpr const char* kForkSocket = "POSENC_FORK_SOCKET";

/// Maximum size of a request, a sequence of null-terminated strings, in bytes.
constexpr std::size_t kLongestRequest = 128 * 1024;

}  // namespace posenc::testing
