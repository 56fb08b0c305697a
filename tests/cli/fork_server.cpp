// Preloaded into a program, so that it is started once and then forked for each run: loading
// LibTorch takes a third of a second, and the tests run the command line hundreds of times. The
// program itself is the one that users run.
//
// glibc calls the first __libc_start_main() that it finds. This one passes on a main() that waits
// for requests before it calls the program's own. Until then the program has started no threads, so
// a fork copies all of it.

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cli/fork_request.h"

extern char** environ;

namespace {

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

// Receives the next request: its strings, and the descriptors that become 0, 1 and 2. Returns false
// after the last request.
bool receive(int socket, std::vector<std::string>& strings, int (&descriptors)[3]) {
  static std::vector<char> bytes(posenc::testing::kLongestRequest);
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)];
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  const ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (count <= 0 || !header) return false;
  std::memcpy(descriptors, CMSG_DATA(header), sizeof descriptors);
  strings.clear();
  for (const char* at = bytes.data(); at < bytes.data() + count; at += strings.back().size() + 1) {
    strings.emplace_back(at);
  }
  return true;
}

// Runs the program with the strings of a request: the folder, the number of arguments, the
// arguments, the environment.
[[noreturn]] void run(std::vector<std::string>& strings, const int (&descriptors)[3]) {
  const auto count = static_cast<std::size_t>(std::atoi(strings[1].c_str()));
  static std::vector<char*> arguments, variables;
  for (std::size_t i = 2; i < strings.size(); ++i) {
    (i < 2 + count ? arguments : variables).push_back(strings[i].data());
  }
  arguments.push_back(nullptr), variables.push_back(nullptr);
  for (int i = 0; i < 3; ++i) dup2(descriptors[i], i);
  if (chdir(strings[0].c_str()) != 0) _exit(126);
  environ = variables.data();
  const int status = program_main(static_cast<int>(count), arguments.data(), variables.data());
  std::fflush(nullptr);
  _exit(status);  // skips LibTorch's destructors, which take a tenth of a second
}

int serve(int argc, char** argv, char** variables) {
  const char* number = std::getenv(posenc::testing::kForkSocket);
  if (!number) return program_main(argc, argv, variables);
  const int socket = std::atoi(number);
  static std::vector<std::string> strings;
  int descriptors[3];
  while (receive(socket, strings, descriptors)) {
    const pid_t child = fork();
    if (child == 0) {
      close(socket);
      run(strings, descriptors);
    }
    for (const int descriptor : descriptors) close(descriptor);
    int status = -1;
    if (child > 0) waitpid(child, &status, 0);
    if (send(socket, &status, sizeof status, MSG_NOSIGNAL) < 0) break;
  }
  _exit(0);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int __libc_start_main(Main main, int argc,
                                                                        char** argv, void (*init)(),
                                                                        void (*fini)(),
                                                                        void (*loader_fini)(),
                                                                        void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  program_main = main;
  const auto start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(serve, argc, argv, init, fini, loader_fini, stack_end);
}
