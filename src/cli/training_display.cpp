#include "cli/training_display.h"

#include <fmt/format.h>
#include <cstdio>

#include "cli/error.h"
#include "cli/progress.h"
#include "platform/streams.h"

namespace posenc::cli {

TrainingDisplay::TrainingDisplay() : terminal_(platform::stderr_is_terminal()) {}

TrainingDisplay::~TrainingDisplay() { clear(); }

void TrainingDisplay::show(const TrainingProgress& progress) {
  complain("{}{}{}", terminal_ ? kEraseLine : "", describe(progress), terminal_ ? "" : "\n");
  std::fflush(stderr);
  shown_ = true;
}

void TrainingDisplay::clear() {
  if (shown_ && terminal_) std::fputs(kEraseLine, stderr);
  shown_ = false;
}

}  // namespace posenc::cli
