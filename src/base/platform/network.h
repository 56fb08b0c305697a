#pragma once

#include <cstdint>
#include <string>

namespace posenc::platform {

/// Whether this host has a network interface of this name, such as `eth0`.
bool is_network_interface(const std::string& name);

/// The address of this host from which it reaches `address`, or an empty text.
std::string local_address(const std::string& address, uint16_t port);

/// Makes a write to a socket whose other end is closed an error instead of ending this process by
/// SIGPIPE, unless the program handles that signal itself.
void ignore_broken_pipes();

}  // namespace posenc::platform
