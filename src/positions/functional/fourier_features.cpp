#include "posenc/positions/functional/fourier_features.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "core/check.h"
#include "positions/sinusoid/frequency.h"

namespace posenc::functional {
namespace {

constexpr int64_t kMaxMultires = 128;  // 2^127 is the largest power of two in float32

at::Tensor bands(const FourierFeaturesFuncOptions& o, at::ScalarType type) {
  const int64_t channels = 2 * o.multires();
  const auto sinusoid = SinusoidOptions(channels)
                            .frequency(o.log_sampling() ? sinusoid::Frequency::PowersOfTwo
                                                        : sinusoid::Frequency::Linear)
                            .max_frequency(std::ldexp(1.0, static_cast<int>(o.multires()) - 1))
                            .arithmetic(type == at::kDouble ? sinusoid::Arithmetic::Float64
                                                            : sinusoid::Arithmetic::Float32);
  return frequencies(sinusoid, channels, 1).sin;
}

}  // namespace

void FourierFeaturesFuncOptions::validate() const {
  const auto& o = *this;
  check_positive("FourierFeatures", "channels", o.channels());
  TORCH_CHECK_VALUE(o.multires() > 0 && o.multires() <= kMaxMultires,
                    "[FourierFeatures] multires must lie in [1, ", kMaxMultires, "]. Got ",
                    o.multires());
  TORCH_CHECK_VALUE(std::isfinite(o.angle_scale()),
                    "[FourierFeatures] angle_scale must be finite. Got ", o.angle_scale());
}

at::Tensor fourier_features(const at::Tensor& x, const FourierFeaturesFuncOptions& options) {
  options.validate();
  TORCH_CHECK_TYPE(x.is_floating_point(), "[FourierFeatures] x must be real-valued. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() > 0 && x.size(-1) == options.channels(),
                    "[FourierFeatures] x must have ", options.channels(),
                    " coordinates in its last axis. Got ", x.sizes());
  const at::Tensor value = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const at::Tensor f =
      bands(options, value.scalar_type()).to(x.device(), value.scalar_type(), true);
  at::Tensor angle = value.unsqueeze(-2) * f.unsqueeze(-1);  // (..., m, C)
  if (options.angle_scale() != 1.0) angle = angle * options.angle_scale();
  at::Tensor features = at::stack({angle.sin(), angle.cos()}, -2).flatten(-3);  // (..., 2 m C)
  if (options.include_input()) features = at::cat({value, features}, -1);
  return features.to(x.scalar_type());
}

}  // namespace posenc::functional
