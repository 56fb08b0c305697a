#include "platform/signals.h"

#include <signal.h>

#include <array>
#include <cstddef>

namespace posenc::platform {
namespace {

constexpr std::array<int, 2> kStopSignals = {SIGINT, SIGTERM};
std::array<struct sigaction, kStopSignals.size()> before;

}  // namespace

void catch_stop_signals(void (*handler)(int number)) {
  struct sigaction action = {};
  action.sa_handler = handler;
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

}  // namespace posenc::platform
