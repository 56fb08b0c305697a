#include "training_display.h"

#include <unistd.h>

#include "messages.h"

namespace pronounce {
namespace {

constexpr const char* kEraseLine = "\r\033[K";

}  // namespace

TrainingDisplay::TrainingDisplay() : terminal_(::isatty(STDERR_FILENO) == 1) {}

TrainingDisplay::~TrainingDisplay() { clear(); }

void TrainingDisplay::show(const posenc::TrainingProgress& progress) {
  note("{}{}{}", terminal_ ? kEraseLine : "", progress.to_string(), terminal_ ? "" : "\n");
  shown_ = true;
}

void TrainingDisplay::clear() {
  if (shown_ && terminal_) note("{}", kEraseLine);
  shown_ = false;
}

}  // namespace pronounce
