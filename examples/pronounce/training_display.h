#pragma once

#include <posenc/train/trainer.h>

namespace pronounce {

/// Shows the progress of a training run on stderr: in one line that is overwritten on a terminal,
/// otherwise in a new line for each report.
class TrainingDisplay {
 public:
  TrainingDisplay();
  ~TrainingDisplay();
  TrainingDisplay(const TrainingDisplay&) = delete;
  TrainingDisplay& operator=(const TrainingDisplay&) = delete;

  bool on_terminal() const { return terminal_; }
  void show(const posenc::TrainingProgress& progress);
  /// Erases the line to make room for other output.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace pronounce
