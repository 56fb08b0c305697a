#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/pronounce/pronouncer.h"

namespace posenc::cli {

/// How a Pronouncer is trained: decided before it begins, so that a run can be repeated.
struct TrainingConfig {
  int64_t steps = 0, warmup = 0;
  int64_t rows = 256;  ///< words of a step
  double learning_rate = 0.0, clip_norm = 1.0, label_smoothing = 0.1;
  int64_t held_out = 1000, seed = 1;
  PronouncerOptions model;
};

/// For so many minutes on two cores; `steps` instead of what these would have.
TrainingConfig course_for(double minutes, std::optional<int64_t> steps = std::nullopt);

/// Trains on `dictionary`, or goes on where `folder` has the checkpoint of this course; `fresh`
/// begins anew. Writes model, checkpoint and curve into `folder`, progress to stderr, the result to
/// stdout. The exit status: 0, or 128 and the signal that asked it to stop.
int run_training(const TrainingConfig& course, const std::string& dictionary,
                 const std::string& folder, bool fresh);

}  // namespace posenc::cli
