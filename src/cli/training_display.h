#pragma once

#include "posenc/train/trainer.h"

namespace posenc::cli {

/// Shows on stderr where a training is: on a terminal in one line that is written over, else in a
/// line a report.
class TrainingDisplay {
 public:
  TrainingDisplay();
  ~TrainingDisplay();
  TrainingDisplay(const TrainingDisplay&) = delete;
  TrainingDisplay& operator=(const TrainingDisplay&) = delete;

  bool on_terminal() const { return terminal_; }
  void show(const TrainingProgress& progress);
  /// Makes room for other output.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace posenc::cli
