#include "platform/process.h"

#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#ifdef __APPLE__
#include <crt_externs.h>
#else
extern char** environ;
#endif

namespace posenc::platform {
namespace {

char** own_environment() {
#ifdef __APPLE__
  return *_NSGetEnviron();  // shared libraries do not see `environ` there
#else
  return environ;
#endif
}

std::vector<char*> environment(const std::string& without) {
  std::vector<char*> result;
  for (char** entry = own_environment(); *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(without + "=")) result.push_back(*entry);
  }
  result.push_back(nullptr);
  return result;
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, std::FILE* in, std::FILE* out,
                std::FILE* err, const std::string& without) {
  std::vector<std::string> words = arguments;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in), 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(out), 1);
  posix_spawn_file_actions_adddup2(&actions, fileno(err), 2);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv.front(), &actions, nullptr, argv.data(),
                                   environment(without).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::system_error(failure, std::generic_category());
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category());
  }
  return status;
}

}  // namespace posenc::platform
