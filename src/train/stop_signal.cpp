#include "posenc/train/stop_signal.h"

#include <c10/util/Exception.h>

#include "base/platform/signals.h"

namespace posenc {
namespace {

bool installed = false;

}  // namespace

StopSignal::StopSignal() {
  TORCH_CHECK(!installed, "[StopSignal] there must be one at a time");
  installed = true;
  platform::catch_stop_signals();
}

StopSignal::~StopSignal() {
  platform::restore_stop_signals();
  installed = false;
}

int StopSignal::number() const { return platform::stop_signal(); }

}  // namespace posenc
