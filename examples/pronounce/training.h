#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pronouncer.h"

namespace pronounce {

/// Everything that determines a training run. Nothing depends on the clock, so a run can be
/// reproduced.
struct TrainingConfig {
  int64_t steps = 0, warmup = 0;
  int64_t rows = 256;  ///< words per batch
  double learning_rate = 0.0, clip_norm = 1.0, label_smoothing = 0.1;
  int64_t reports = 20;     ///< lines of progress in a pipe; as many checkpoints are written
  PronouncerOptions model;  ///< also says which words are held out
};

/// Returns a configuration that takes about `minutes` on two cores. `steps` overrides its number of
/// steps.
TrainingConfig training_config(double minutes, std::optional<int64_t> steps = std::nullopt);

/// Sets the width of the model, and d_ff to four times as much. The learning rate of a wider model
/// is smaller by the same factor, as that of its matrices has to be with Adam (Yang et al.,
/// arXiv:2203.03466); it diverges otherwise.
void set_width(TrainingConfig& config, int64_t d_model);

/// Trains on `dictionary`, together with the processes of join_ranks(), or resumes from the
/// checkpoint in `folder` if it is of this configuration and `fresh` is not set. Writes model,
/// checkpoint and learning curve to `folder`, progress to stderr and the result to stdout. Returns
/// the exit status: 0, or 128 plus the number of the signal that stopped training.
int run_training(const TrainingConfig& config, const std::string& dictionary,
                 const std::string& folder, bool fresh);

}  // namespace pronounce
