#include "parallel/gloo/launch.h"

#include <c10/util/Exception.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <limits>

namespace posenc::gloo {
namespace {

/// An environment variable; one that is set to nothing counts as missing.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name, int least, int most) {
  const std::string text = variable(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  TORCH_CHECK_VALUE(
      error == std::errc() && end == text.data() + text.size() && value >= least && value <= most,
      "[group_from_environment] ", name, " must be an integer from ", least, " to ", most,
      ". Got `", text, "`");
  return value;
}

void require(const char* name, const char* because_of) {
  TORCH_CHECK_VALUE(!variable(name).empty(), "[group_from_environment] ", name,
                    " must be set, since ", because_of, " is");
}

/// The variables of a launcher. The first whose rank is set counts: torchrun may be started by
/// srun, and mpirun inside an allocation of SLURM, which sets its variables for the script itself.
struct Launcher {
  const char* rank;
  const char* size;
};
constexpr Launcher kLaunchers[] = {{"RANK", "WORLD_SIZE"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_NTASKS"}};

const Launcher* find_launcher() {
  for (const Launcher& launcher : kLaunchers) {
    if (!variable(launcher.rank).empty()) return &launcher;
  }
  for (const char* name : {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    TORCH_CHECK_VALUE(variable(name).empty(), "[group_from_environment] RANK must be set, since ",
                      name, " is");
  }
  return nullptr;
}

}  // namespace

std::optional<Launch> launch_from_environment() {
  const Launcher* launcher = find_launcher();
  if (!launcher) return std::nullopt;
  require(launcher->size, launcher->rank);
  Launch launch;
  launch.size = number(launcher->size, 1, std::numeric_limits<int>::max());
  launch.rank = number(launcher->rank, 0, launch.size - 1);
  if (launch.size == 1) return launch;
  require("MASTER_ADDR", launcher->rank);
  require("MASTER_PORT", launcher->rank);
  launch.address = variable("MASTER_ADDR");
  launch.port = static_cast<uint16_t>(number("MASTER_PORT", 1, 65535));
  launch.agent_serves = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const std::string attempt = variable("TORCHELASTIC_RESTART_COUNT");
  if (!attempt.empty()) launch.attempt = attempt;
  return launch;
}

std::string local_address(const std::string& address, uint16_t port) {
  for (const int family : {AF_INET, AF_INET6}) {
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_DGRAM;  // connecting sends nothing; it only chooses a route
    addrinfo* found = nullptr;
    if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) continue;
    const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
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

}  // namespace posenc::gloo
