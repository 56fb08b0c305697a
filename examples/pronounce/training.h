#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pronouncer.h"

namespace pronounce {

/// Everything that determines a training run. None of it depends on the clock, so that a run can be
/// repeated.
struct TrainingConfig {
  int64_t steps = 0, warmup = 0;
  int64_t rows = 256;  ///< words in a batch
  double learning_rate = 0.0, clip_norm = 1.0, label_smoothing = 0.1;
  int64_t held_out = 1000, seed = 1;
  PronouncerOptions model;
};

/// A configuration that takes about `minutes` on two cores. `steps` replaces its number of steps.
TrainingConfig training_config(double minutes, std::optional<int64_t> steps = std::nullopt);

/// Trains on `dictionary`, or resumes the run of this configuration whose checkpoint is in `folder`
/// unless `fresh` is set. Writes model, checkpoint and learning curve into `folder`, progress to
/// stderr, the result to stdout. Returns the exit status: 0, or 128 plus the number of the signal
/// that stopped it.
int run_training(const TrainingConfig& config, const std::string& dictionary,
                 const std::string& folder, bool fresh);

}  // namespace pronounce
