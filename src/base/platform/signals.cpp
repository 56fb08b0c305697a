#include "base/platform/signals.h"

#include <signal.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>

namespace posenc::platform {
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
