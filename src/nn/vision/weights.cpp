#include "nn/vision/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <cmath>

namespace posenc {
namespace {

// The distribution function of the standard normal distribution.
double normal_cdf(double x) { return (1.0 + std::erf(x / std::sqrt(2.0))) / 2.0; }

}  // namespace

void truncated_normal_(at::Tensor& weight, double deviation) {
  constexpr double kCut = 2.0;
  const at::NoGradGuard no_grad;
  const bool is_half = weight.scalar_type() == at::kHalf || weight.scalar_type() == at::kBFloat16;
  at::Tensor drawn = is_half ? at::empty_like(weight, at::kFloat) : weight;
  drawn.uniform_(2 * normal_cdf(-kCut / deviation) - 1, 2 * normal_cdf(kCut / deviation) - 1);
  drawn.erfinv_().mul_(deviation * std::sqrt(2.0)).clamp_(-kCut, kCut);
  if (is_half) weight.copy_(drawn);
}

void zero_weights_(at::Tensor& weight) {
  const at::NoGradGuard no_grad;
  weight.zero_();
}

}  // namespace posenc
