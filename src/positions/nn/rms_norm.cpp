#include "posenc/positions/nn/rms_norm.h"

#include <torch/nn/init.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "positions/nn/rms_norm.h"

namespace posenc {

RMSNormImpl::RMSNormImpl(RMSNormOptions options_) : options(options_) { RMSNormImpl::reset(); }

void RMSNormImpl::reset() {
  check_positive("RMSNorm", "d_model", options.d_model());
  weight = register_parameter("weight", torch::empty({options.d_model()}));
  reset_parameters();
}

void RMSNormImpl::reset_parameters() {
  options.plus_one() ? torch::nn::init::zeros_(weight) : torch::nn::init::ones_(weight);
}

void RMSNormImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "RMSNorm", options, RMSNormOptions(-1));
}

torch::Tensor RMSNormImpl::forward(const torch::Tensor& x) { return rms_norm(x, weight, options); }

// The original systems' operations in their order, for the same bits.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight,
                       const RMSNormOptions& options) {
  TORCH_CHECK_TYPE(x.is_floating_point(), "[RMSNorm] x must be floating-point. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() > 0 && x.size(-1) == options.d_model(), "[RMSNorm] x must be (..., ",
                    options.d_model(), "). Got ", x.sizes());
  const torch::Tensor wide = x.to(torch::kFloat);
  const torch::Tensor variance = wide.pow(2).mean(-1, /*keepdim=*/true);
  const torch::Tensor normal = wide * torch::rsqrt(variance + options.eps());
  if (!weight.defined()) return normal.to(x.scalar_type());
  const bool after = options.round() == RMSNormOptions::RoundTo::AfterWeight;
  const torch::Tensor factor =
      options.plus_one() ? 1.0 + (after ? weight.to(torch::kFloat) : weight) : weight;
  return after ? (normal * factor).to(x.scalar_type()) : factor * normal.to(x.scalar_type());
}

}  // namespace posenc
