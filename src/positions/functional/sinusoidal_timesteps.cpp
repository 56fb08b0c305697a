#include "posenc/positions/functional/sinusoidal_timesteps.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "posenc/positions/sinusoid/table.h"
#include "positions/sinusoid/columns.h"
#include "positions/sinusoid/frequency.h"

namespace posenc::functional {
namespace {

// Whether the rows are just sines and cosines of t f, which ATen computes on any device.
bool plain(const SinusoidOptions& o) {
  const bool whole_rows = o.odd_dim() == sinusoid::OddDim::Error ||
                          o.odd_dim() == sinusoid::OddDim::ZeroColumn ||
                          o.odd_dim() == sinusoid::OddDim::Narrow;
  return o.precision() == Precision::Reference && o.power_shape() == sinusoid::PowerShape::Row &&
         o.grid().empty() && o.coordinates().empty() && o.post() == sinusoid::Post::None &&
         whole_rows && !o.angle_by_length() && !o.raw_first() && !o.zero_row();
}

// sinusoid_rows() as operations on t's device. They are the same in the same order, so the bits on
// the CPU are the same.
at::Tensor plain_rows(const at::Tensor& t, const SinusoidOptions& o) {
  const Frequencies f = frequencies(o, o.axis_widths()[0], t.size(0));
  const at::Tensor time = t.to(f.sin.scalar_type()).unsqueeze(1);
  const auto angle = [&](const at::Tensor& frequency) {  // (N, D / 2)
    const at::Tensor there = frequency.to(t.device(), frequency.scalar_type(), true);
    at::Tensor a = o.phase() == sinusoid::Phase::Product ? time * there : time / there;
    if (o.angle_scale() != 1.0) a = a * o.angle_scale();
    return o.arithmetic() == sinusoid::Arithmetic::Float64Angle ? a.to(at::kFloat) : a;
  };
  const at::Tensor of_sines = angle(f.sin);
  const at::Tensor of_cosines = f.sin.is_same(f.cos) ? of_sines : angle(f.cos);
  at::Tensor rows =
      at::zeros({t.size(0), o.channels()}, at::TensorOptions(at::kFloat).device(t.device()));
  columns(o, 0, false).of(rows).copy_(of_sines.sin());
  columns(o, 0, true).of(rows).copy_(of_cosines.cos());
  return rows;
}

}  // namespace

at::Tensor timestep_rows(const at::Tensor& t, const SinusoidOptions& options) {
  TORCH_CHECK_VALUE(t.dim() == 1, "[SinusoidalTimesteps] t must be (N). Got ", t.sizes());
  TORCH_CHECK_TYPE(t.scalar_type() != at::kBool && !t.is_complex(),
                   "[SinusoidalTimesteps] t must be integer or real. Got ", t.scalar_type());
  // On other devices, reading the answer would synchronise.
  TORCH_CHECK_VALUE(!t.is_cpu() || at::isfinite(t).all().item<bool>(),
                    "[SinusoidalTimesteps] t must be finite. Got NaN or infinity");
  options.validate();
  TORCH_CHECK_VALUE(
      plain(options) || !(at::GradMode::is_enabled() && t.requires_grad()),
      "[SinusoidalTimesteps] this sinusoid has no gradient of t, which only sines and "
      "cosines in Precision::Reference have: pass t.detach(). Got t that requires a "
      "gradient");
  return plain(options) ? plain_rows(t, options) : sinusoid_rows(options, t).to(t.device());
}

at::Tensor sinusoidal_timesteps(const at::Tensor& t, const SinusoidOptions& options,
                                const TimestepWeights& weights) {
  const at::Tensor rows =
      timestep_rows(t, options).to(weights.weight0.device(), weights.weight0.scalar_type(), true);
  const at::Tensor hidden = at::silu(at::linear(rows, weights.weight0, weights.bias0));
  return at::linear(hidden, weights.weight2, weights.bias2);  // (N, C)
}

}  // namespace posenc::functional
