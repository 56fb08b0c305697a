#include "posenc/train/lambda_lr.h"

#include <c10/util/Exception.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace posenc {

LearningRateFactor warmup_factor(int64_t d_model, int64_t warmup) {
  check_positive("warmup_factor", "d_model", d_model);
  check_positive("warmup_factor", "warmup", warmup);
  const double width = std::pow(static_cast<double>(d_model), -0.5);
  const double slope = std::pow(static_cast<double>(warmup), -1.5);
  return [width, slope](int64_t step) {
    const auto s = static_cast<double>(step + 1);
    return width * std::min(std::pow(s, -0.5), s * slope);
  };
}

LearningRateFactor cosine_factor(int64_t warmup, int64_t steps) {
  TORCH_CHECK_VALUE(0 <= warmup && warmup < steps,
                    "[cosine_factor] warmup must lie in [0, steps). Got ", warmup, " and steps ",
                    steps);
  return [warmup, steps](int64_t step) {
    if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
    const double done =
        static_cast<double>(std::min(step, steps) - warmup) / static_cast<double>(steps - warmup);
    return 0.5 * (1.0 + std::cos(M_PI * done));
  };
}

LambdaLR::LambdaLR(torch::optim::Optimizer& optimizer, LearningRateFactor factor)
    : LRScheduler(optimizer), base_lrs_(get_current_lrs()), factor_(std::move(factor)) {
  step();
}

// step_count_ is the number of rates set so far, which is the index of the next one.
std::vector<double> LambdaLR::get_lrs() {
  std::vector<double> lrs;
  for (const double base : base_lrs_) {
    const double factor = factor_(step_count_);
    // A negative rate would ascend the gradient, and optimisers would refuse to load it.
    TORCH_CHECK_VALUE(factor >= 0.0 && std::isfinite(factor),
                      "[LambdaLR] the factor must be finite and not negative. Got ", factor,
                      " for step ", step_count_);
    lrs.push_back(base * factor);
  }
  return lrs;
}

}  // namespace posenc
