#pragma once

#include <torch/optim/schedulers/lr_scheduler.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace posenc {

/// What the learning rate of step n = 0, 1, ... is multiplied by.
using LearningRateFactor = std::function<double(int64_t step)>;

/// The paper's warm-up ("Noam"): d_model^-0.5 min(s^-0.5, s warmup^-1.5), s = n + 1; it rises for
/// `warmup` steps and then falls with the root of the step. The group's own rate is usually 1.
/// Errors: c10::ValueError unless both are positive. Source: "Attention Is All You Need", 5.3.
LearningRateFactor warmup_factor(int64_t d_model, int64_t warmup);

/// For a run whose length is known: rises to 1 over `warmup` steps, min(s / warmup, 1), and falls
/// to 0 after the last of `steps` along half a cosine. Errors: c10::ValueError unless 0 <= warmup <
/// steps.
LearningRateFactor cosine_factor(int64_t warmup, int64_t steps);

/// PyTorch's LambdaLR, which LibTorch lacks: each group's learning rate is the one that it had when
/// the schedule was made times factor(n). That of step 0 is set at once; call step() after the
/// optimiser's. Any optimiser, any groups. A checkpoint restores it when the schedule is made
/// before load_checkpoint(), which puts back the count and the current rates. Throws
/// c10::ValueError for a factor that is negative or not finite, and leaves the rates unchanged.
class LambdaLR : public torch::optim::LRScheduler {
 public:
  LambdaLR(torch::optim::Optimizer& optimizer, LearningRateFactor factor);

 private:
  std::vector<double> get_lrs() override;

  std::vector<double> base_lrs_;
  LearningRateFactor factor_;
};

}  // namespace posenc
