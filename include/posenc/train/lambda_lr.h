#pragma once

#include <torch/optim/schedulers/lr_scheduler.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/train/checkpointable.h"

namespace posenc POSENC_EXPORT {

/// The factor of the learning rate at step n = 0, 1, ...
using LearningRateFactor = std::function<double(int64_t step)>;

/// The paper's warm-up ("Noam"): d_model^-0.5 min(s^-0.5, s warmup^-1.5), s = n + 1. It rises for
/// `warmup` steps and then falls with the square root of the step. The group's own learning rate is
/// usually 1.
///
/// Errors: c10::ValueError unless both arguments are positive.
///
/// Source: "Attention Is All You Need", 5.3.
LearningRateFactor warmup_factor(int64_t d_model, int64_t warmup);

/// A cosine schedule with warm-up, for a run of known length: rises to 1 over `warmup` steps,
/// min(s / warmup, 1), and falls to 0 after the last of `steps` along half a cosine.
///
/// Errors: c10::ValueError unless 0 <= warmup < steps.
LearningRateFactor cosine_factor(int64_t warmup, int64_t steps);

/// PyTorch's LambdaLR, which LibTorch lacks: the learning rate of each group is factor(n) times its
/// base rate. The constructor sets the rate of step 0; call step() after the optimiser's.
///
/// The base rate is the one that the group had when its first schedule was made, as Python's
/// `initial_lr`: a second schedule begins there, not where the first one ended. LibTorch's
/// optimisers do not keep it; there it is the rate that the group has now.
///
/// To resume from a checkpoint, construct the schedule before load_checkpoint(), which restores the
/// step count, the base rates and the current rates; the factor is the program's.
///
/// ```cpp
/// posenc::TokenEmbedding model(100, 32);
/// posenc::FusedAdam adam(model->parameters(), 1.0);
/// posenc::LambdaLR schedule(adam, posenc::warmup_factor(/*d_model=*/32, /*warmup=*/4000));
/// schedule.step();  // after each adam.step()
/// ```
///
/// Errors: c10::ValueError for a factor that is negative or not finite, the rates are then
/// unchanged; for another number of factors than of groups; if all base rates are 0.
class LambdaLR : public torch::optim::LRScheduler, public CheckpointableScheduler {
 public:
  /// A schedule for all groups of `optimizer`, which must outlive it.
  LambdaLR(torch::optim::Optimizer& optimizer, LearningRateFactor factor);
  /// A schedule with a factor for each group.
  LambdaLR(torch::optim::Optimizer& optimizer, std::vector<LearningRateFactor> factors);

  /// `LambdaLR`.
  std::string kind() const override;
  /// The base rates: `base_lr.0` for the first group.
  std::map<std::string, double> numbers() const override;
  /// Sets the base rates.
  void set_numbers(const std::map<std::string, double>& numbers) override;

 private:
  std::vector<double> get_lrs() override;

  std::vector<double> base_lrs_;
  std::vector<LearningRateFactor> factors_;  // by group
};

}  // namespace posenc
