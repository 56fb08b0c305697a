#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace posenc::gloo {

/// This process's place in a group, as its launcher defines it.
struct Launch {
  int rank = 0;
  int size = 1;
  std::string address;        ///< where the processes meet; empty for a single process
  uint16_t port = 0;          ///< the same
  bool agent_serves = false;  ///< torchrun's agent, not rank 0, serves the store there
  std::string attempt = "0";  ///< torchrun's number of restarts
};

/// Reads the environment, as group_from_environment() documents; none if nothing launched this
/// process.
std::optional<Launch> launch_from_environment();

}  // namespace posenc::gloo
