#include "cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

#include "cli/fork_request.h"
#include "posenc/weights/safetensors.h"

extern char** environ;

namespace posenc::testing {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::string content(std::FILE* file) {
  std::string text;
  char part[4096];
  std::rewind(file);
  while (const std::size_t count = std::fread(part, 1, sizeof part, file)) text.append(part, count);
  return text;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) result.emplace_back(*entry);
  return result;
}

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

// Runs a program that is started once and then forked (fork_server.cpp), with the descriptors
// `in`, `out` and `err`. Returns its wait status, or nullopt if the caller has to start the
// program itself: in a build with sanitizers, or if the environment that the program may have read
// while loading has changed.
std::optional<int> run_forked(const std::vector<std::string>& command,
                              const std::vector<std::string>& environment, int in, int out,
                              int err) {
  if (*POSENC_FORK_SERVER == '\0') return std::nullopt;
  static std::map<std::string, Server> servers;
  const auto [server, _] = servers.try_emplace(command[0], command[0], environment);
  return server->second.run(command, environment, {in, out, err});
}

// The wait status of a new process.
int run_started(const std::vector<std::string>& command, const std::vector<std::string>& variables,
                int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  auto arguments = command, entries = variables;
  pid_t child = 0;
  const int failure = posix_spawn(&child, command[0].c_str(), &actions, nullptr,
                                  pointers(arguments).data(), pointers(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  int status = 127 << 8;  // as in a shell, for a program that cannot be started
  if (failure == 0) waitpid(child, &status, 0);
  return status;
}

Result run(const std::vector<std::string>& command, bool forked) {
  const File out(std::tmpfile(), std::fclose), err(std::tmpfile(), std::fclose);
  const auto variables = environment();
  const int to[] = {fileno(out.get()), fileno(err.get())};
  const auto found = forked ? run_forked(command, variables, 0, to[0], to[1]) : std::nullopt;
  const int status = found ? *found : run_started(command, variables, to[0], to[1]);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content(out.get()),
          content(err.get())};
}

}  // namespace

Result run_program(const std::vector<std::string>& command) { return run(command, false); }

Result run_loaded(const std::vector<std::string>& command) { return run(command, true); }

Result posenc(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {POSENC_CLI};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_loaded(command);
}

std::string InFolder::safetensors(const std::string& name, const StateDict& tensors) const {
  save_safetensors(file(name), tensors);
  return file(name);
}

std::string InFolder::text_file(const std::string& name, const std::string& content) const {
  std::ofstream(file(name), std::ios::binary) << content;
  return file(name);
}

std::vector<std::string> InFolder::names() const {
  std::vector<std::string> result;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    result.push_back(entry.path().filename());
  }
  std::sort(result.begin(), result.end());
  return result;
}

StateDict dict(const std::vector<std::pair<std::string, at::Tensor>>& entries) {
  StateDict result;
  for (const auto& [name, tensor] : entries) result.insert(name, tensor);
  return result;
}

void expect_refused(const Result& result, const std::string& subcommand, const std::string& text) {
  expect_refused_by("posenc " + subcommand, result, text);
}

void expect_refused_by(const std::string& program, const Result& result, const std::string& text) {
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.rfind(program + ": ", 0), 0u) << result.err;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, text, result.err);
  for (const char* trace : {"Exception raised from", "frame #", ".cpp", "c10::"}) {
    EXPECT_PRED_FORMAT2(::testing::IsNotSubstring, trace, result.err);
  }
}

}  // namespace posenc::testing
