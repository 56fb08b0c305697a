#include "posenc/train/stop_signal.h"

#include <c10/util/Exception.h>

#include <csignal>

#include "platform/signals.h"

namespace posenc {
namespace {

volatile std::sig_atomic_t came = 0;  // all that a signal handler may modify
bool installed = false;

void remember(int number) { came = number; }

}  // namespace

StopSignal::StopSignal() {
  TORCH_CHECK(!installed, "[StopSignal] there must be one at a time. Got a second");
  installed = true;
  came = 0;
  platform::catch_stop_signals(remember);
}

StopSignal::~StopSignal() {
  platform::restore_stop_signals();
  installed = false;
}

int StopSignal::number() const { return came; }

}  // namespace posenc
