#include "cli/forked.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "cli/fork_request.h"

namespace posenc::testing {
namespace {

constexpr int kSocket = 3;  // the server's descriptor for its end

// A loaded program. It exits when this process does, because that closes its socket.
class Server {
 public:
  Server(const std::string& program, std::vector<std::string> environment)
      : environment_(environment) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    const int far =
        ::fcntl(ends[1], F_DUPFD_CLOEXEC, kSocket + 1);  // not kSocket: dup2 would keep FD_CLOEXEC
    ::close(ends[1]);
    environment.push_back("LD_PRELOAD=" POSENC_FORK_SERVER);
    environment.push_back(std::string(kForkSocket) + "=" + std::to_string(kSocket));
    std::vector<char*> variables;
    for (auto& entry : environment) variables.push_back(entry.data());
    variables.push_back(nullptr);
    std::string name = program;
    char* arguments[] = {name.data(), nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, far, kSocket);
    pid_t child = 0;
    if (::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, variables.data()) ==
        0) {
      socket_ = ends[0];
    }
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(far);
  }

  std::optional<int> run(const std::vector<std::string>& command,
                         const std::vector<std::string>& environment, const int (&descriptors)[3]) {
    if (socket_ < 0 || environment != environment_) return std::nullopt;
    std::string request = std::filesystem::current_path().string() + '\0';
    request += std::to_string(command.size()) + '\0';
    for (const auto* strings : {&command, &environment}) {
      for (const auto& text : *strings) request += text + '\0';
    }
    int status = -1;
    if (request.size() > kLongestRequest || !send(request, descriptors) ||
        ::recv(socket_, &status, sizeof status, 0) != sizeof status) {
      return std::nullopt;
    }
    return status;
  }

 private:
  bool send(std::string& request, const int (&descriptors)[3]) {
    iovec part{request.data(), request.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)]{};
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = control, message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
    return ::sendmsg(socket_, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
  }

  int socket_ = -1;
  std::vector<std::string> environment_;
};

}  // namespace

std::optional<int> run_forked(const std::vector<std::string>& command,
                              const std::vector<std::string>& environment, int in, int out,
                              int err) {
  if (*POSENC_FORK_SERVER == '\0') return std::nullopt;
  static std::map<std::string, Server> servers;
  const auto [server, _] = servers.try_emplace(command[0], command[0], environment);
  return server->second.run(command, environment, {in, out, err});
}

}  // namespace posenc::testing
