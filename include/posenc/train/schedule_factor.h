#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/train/lambda_lr.h"

namespace posenc POSENC_EXPORT {

/// Options of schedule_factor(), with the names and defaults of transformers. A schedule reads
/// those that it has there.
struct ScheduleOptions {
  /// Number of steps in which the factor rises from 0 to 1.
  TORCH_ARG(int64_t, num_warmup_steps) = 0;
  /// Number of steps of the whole run, which `linear`, the cosines and `polynomial` need.
  TORCH_ARG(std::optional<int64_t>, num_training_steps);
  /// Waves of the cosine; by default 0.5, and 1 for `cosine_with_restarts`.
  TORCH_ARG(std::optional<double>, num_cycles);
  /// The learning rate of the optimiser, which `polynomial` needs: its end is a rate, not a factor.
  TORCH_ARG(std::optional<double>, lr);
  /// The rate at the end of `polynomial`.
  TORCH_ARG(double, lr_end) = 1e-7;
  /// The power of `polynomial`.
  TORCH_ARG(double, power) = 1.0;
  /// The time scale of `inverse_sqrt`; by default num_warmup_steps, or 10,000 without warm-up.
  TORCH_ARG(std::optional<int64_t>, timescale);
  /// Number of steps of `warmup_stable_decay` at the factor 1; by default what the others leave of
  /// num_training_steps.
  TORCH_ARG(std::optional<int64_t>, num_stable_steps);
  /// Number of steps in which `warmup_stable_decay` falls, which it needs.
  TORCH_ARG(std::optional<int64_t>, num_decay_steps);
  /// How `warmup_stable_decay` rises: `linear`, `cosine` or `1-sqrt`.
  TORCH_ARG(std::string, warmup_type) = "linear";
  /// How it falls: `linear`, `cosine` or `1-sqrt`.
  TORCH_ARG(std::string, decay_type) = "cosine";
  /// Its least factor.
  TORCH_ARG(double, min_lr_ratio) = 0.0;
};

/// The factor of transformers' `get_scheduler(name)` at every step: `linear`, `constant`,
/// `constant_with_warmup`, `cosine`, `cosine_with_restarts`, `polynomial`, `inverse_sqrt` or
/// `warmup_stable_decay`.
/// ```cpp
/// torch::nn::Linear model(4, 2);
/// posenc::FusedAdam adam(model->parameters(), 5e-5);
/// auto options = posenc::ScheduleOptions().num_warmup_steps(100).num_training_steps(2000);
/// posenc::LambdaLR schedule(adam, posenc::schedule_factor("linear", options));
/// ```
///
/// Errors: c10::ValueError for a name that is not in the list, an option that the schedule needs
/// and does not have, and options out of range.
///
/// Source: transformers.optimization.
LearningRateFactor schedule_factor(const std::string& name, const ScheduleOptions& options = {});

/// The names that schedule_factor() takes.
std::vector<std::string> schedule_names();

}  // namespace posenc
