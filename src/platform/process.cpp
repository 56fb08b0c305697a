#include "platform/process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
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

namespace {

constexpr std::array<int, 2> kStopSignals = {SIGINT, SIGTERM};
std::array<struct sigaction, kStopSignals.size()> before;
volatile std::sig_atomic_t came = 0;  // the only kind of object that a signal handler may modify

void remember(int number) { came = number; }

}  // namespace

void catch_stop_signals() {
  came = 0;
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], nullptr, &before[i]);
    // The parent ignores this signal: for example, a Ctrl-C is meant for the foreground job.
    if (before[i].sa_handler != SIG_IGN) sigaction(kStopSignals[i], &action, nullptr);
  }
}

void restore_stop_signals() {
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], &before[i], nullptr);
  }
}

int stop_signal() { return came; }

void end_by_signal(int number) {
  std::signal(number, SIG_DFL);
  std::raise(number);
  std::_Exit(128 + number);  // as a shell reports it; reached only if the signal is blocked
}

}  // namespace posenc::platform
