#include "base/platform/network.h"

#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

namespace posenc::platform {

bool is_network_interface(const std::string& name) { return ::if_nametoindex(name.c_str()) != 0; }

std::string local_address(const std::string& address, uint16_t port) {
  for (const int family : {AF_INET, AF_INET6}) {
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_DGRAM;  // connecting sends nothing; it only chooses a route
    addrinfo* found = nullptr;
    if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) continue;
    const int fd = ::socket(family, SOCK_DGRAM, 0);
    if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // macOS has no SOCK_CLOEXEC
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    auto* own_address = reinterpret_cast<sockaddr*>(&own);
    char name[NI_MAXHOST] = "";
    const bool routed =
        fd >= 0 && ::connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
        ::getsockname(fd, own_address, &length) == 0 &&
        ::getnameinfo(own_address, length, name, sizeof(name), nullptr, 0, NI_NUMERICHOST) == 0;
    if (fd >= 0) ::close(fd);
    ::freeaddrinfo(found);
    if (routed) return name;
  }
  return {};
}

void ignore_broken_pipes() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    ::signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace posenc::platform
