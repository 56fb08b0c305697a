#include "posenc/train/stop_signal.h"

#include <c10/util/Exception.h>
#include <signal.h>

#include <array>
#include <cstddef>

namespace posenc {
namespace {

constexpr std::array<int, 2> kStopSignals = {SIGINT, SIGTERM};

volatile sig_atomic_t came = 0;  // all that a handler may touch
bool installed = false;
std::array<struct sigaction, kStopSignals.size()> before;

void remember(int number) { came = number; }

}  // namespace

StopSignal::StopSignal() {
  TORCH_CHECK(!installed, "[StopSignal] there must be one at a time. Got a second");
  installed = true;
  came = 0;
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], nullptr, &before[i]);
    // Who started the process wants it deaf to this one: a Ctrl-C meant for the job in front.
    if (before[i].sa_handler != SIG_IGN) sigaction(kStopSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], &before[i], nullptr);
  }
  installed = false;
}

int StopSignal::number() const { return came; }

}  // namespace posenc
