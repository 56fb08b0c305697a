// The frequencies, by the operations of transformers' modeling_rope_utils.py in their order:
// float32 tensors, with Python's floats as Scalars. Python computes x / tensor as
// reciprocal(tensor) * x. Other systems have other rules, and some compute in another dtype.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <numbers>

#include "posenc/positions/rotary/rotary.h"
#include "positions/rotary/exact.h"
#include "positions/rotary/scaling.h"
#include "positions/sinusoid/frequency.h"

namespace posenc {
namespace {

// arange(0, end, 2) / divisor
at::Tensor exponents(int64_t end, int64_t divisor, at::ScalarType type) {
  return at::arange(0, end, 2, at::TensorOptions(type)) / divisor;
}

at::Tensor tensor_of(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::TensorOptions(at::kDouble)).to(at::kFloat);
}

// The frequencies of one plane, without a scaling.
struct Rule {
  rotary::Frequency frequency;
  at::ScalarType type;
  double base;
  int64_t dim;

  at::Tensor steps(double first, double last) const {
    return at::linspace(first, last, (dim + 1) / 2, at::TensorOptions(type));
  }
  at::Tensor powers() const {
    const at::TensorOptions options(type);
    if (type != at::kFloat && type != at::kDouble) {  // V-JEPA 2, whose indices stay exact longer
      return at::pow(base, at::arange((dim + 1) / 2, options).div_(static_cast<double>(dim) / 2.0));
    }
    return at::pow(base, exponents(dim, dim, type));
  }
  // For some widths, such as 98, arange returns one step too many, and transformers fails.
  at::Tensor powers_of_steps() const {
    const double step = 2.0 / static_cast<double>(dim);
    const at::Tensor steps = at::arange(0, 1, step, at::TensorOptions(type));
    return at::pow(base, steps.slice(0, 0, dim / 2));
  }
  at::Tensor operator()() const {
    using rotary::Frequency;
    constexpr double kPi = std::numbers::pi;
    switch (frequency) {
      case Frequency::Power: return powers().reciprocal();
      case Frequency::PowerOfSteps: return powers_of_steps().reciprocal();
      case Frequency::PowerDivisor: return powers();
      case Frequency::Exponential:
        return at::exp(at::arange(dim / 2, at::TensorOptions(type)) * -std::log(base) / (dim / 2));
      case Frequency::GrowingPower: return at::pow(base, steps(0.0, 1.0)) * kPi / 2.0;
      case Frequency::PixelBands: return steps(1.0, base / 2) * kPi;
      case Frequency::LogPixelBands:
        return at::pow(2, steps(0.0, std::log(base) / std::log(2.0) - 1)) * kPi;
      case Frequency::Learned: break;
    }
    TORCH_CHECK_VALUE(false,
                      "[rotary] Frequency::Learned has no formula: pass the model's frequencies, "
                      "or its cos and sin");
  }
};

// Computes the frequencies for sequences of a given length.
struct Maker {
  const RotaryOptions& options;
  int64_t length;
  at::ScalarType type;

  Rule rule(double base) const { return {options.frequency(), type, base, dim()}; }
  at::Tensor powers() const { return rule(options.base()).powers(); }
  at::Tensor unscaled(double base) const { return rule(base)(); }
  int64_t dim() const { return options.plane_dims()[0]; }
  // The exponent with which scalings raise the base.
  double growth() const { return static_cast<double>(dim()) / static_cast<double>(dim() - 2); }

  RotaryFrequencies operator()(const rotary::Default&) const {
    if (options.shares_frequencies()) return {unscaled(options.base())};
    const std::vector<int64_t> dims = options.plane_dims();
    std::vector<at::Tensor> planes;
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto& bases = options.axis_bases();
      const double base = bases.empty() ? options.base() : bases[i];
      planes.push_back(Rule{options.frequency(), type, base, dims[i]}());
    }
    return {at::cat(planes)};
  }

  RotaryFrequencies operator()(const rotary::Linear& s) const {
    return {unscaled(options.base()).div_(s.factor)};
  }

  RotaryFrequencies operator()(const rotary::Proportional& s) const {
    const auto rotating =
        static_cast<int64_t>(std::floor(s.proportion * static_cast<double>(dim()) / 2.0));
    at::Tensor f = at::pow(options.base(), exponents(2 * rotating, dim(), type)).reciprocal();
    if (rotating < dim() / 2) f = at::cat({f, at::zeros({dim() / 2 - rotating}, f.options())});
    return {f.div_(s.factor)};
  }

  // A raised base is a tensor, so its whole formula is computed in float32.
  RotaryFrequencies operator()(const rotary::Dynamic& s) const {
    if (length <= s.max_position) {
      const auto most = static_cast<double>(s.max_position);
      return {
          unscaled(options.base() * std::pow(s.factor * most / most - (s.factor - 1), growth()))};
    }
    const at::Tensor grown =
        at::scalar_tensor(length, at::TensorOptions(at::kLong)).to(at::kFloat) * s.factor;
    const at::Tensor base =
        at::pow(grown / s.max_position - (s.factor - 1), growth()) * options.base();
    return {at::pow(base, exponents(dim(), dim(), type)).reciprocal()};
  }

  RotaryFrequencies operator()(const rotary::NtkAlpha& s) const {
    return {unscaled(ntk_base(options.base(), s.alpha, dim()))};
  }

  RotaryFrequencies operator()(const rotary::Yarn& s) const {
    const at::Tensor power = powers();
    const at::Tensor kept = power.reciprocal();
    const at::Tensor scaled = (power * s.factor).reciprocal();
    const YarnRamp ends = yarn_ramp(s, dim(), options.base());
    const at::Tensor ramp =
        ((at::arange(dim() / 2, power.options()) - ends.low) / (ends.high - ends.low)).clamp(0, 1);
    const at::Tensor weight = 1 - ramp;
    return {scaled * (1 - weight) + kept * weight, yarn_attention_factor(s)};
  }

  RotaryFrequencies operator()(const rotary::LongRope& s) const {
    const bool is_long = static_cast<double>(length) > s.original_max_position;
    const at::Tensor factors = tensor_of(is_long ? s.long_factor : s.short_factor);
    double attention = 1.0;
    if (s.attention_factor) {
      attention = *s.attention_factor;
    } else if (s.factor > 1.0) {
      attention = std::sqrt(1 + std::log(s.factor) / std::log(s.original_max_position));
    }
    return {(factors * powers()).reciprocal(), attention};
  }

  RotaryFrequencies operator()(const rotary::PhiMoe& s) const {
    const bool is_long = static_cast<double>(length) > s.original_max_position;
    return {(tensor_of(s.short_factor) * powers()).reciprocal(),
            is_long ? s.long_mscale : s.short_mscale};
  }

  RotaryFrequencies operator()(const rotary::Llama3& s) const {
    const double original = s.original_max_position;
    const double low_wavelength = original / s.low_freq_factor;
    const double high_wavelength = original / s.high_freq_factor;
    const at::Tensor f = unscaled(options.base());
    const at::Tensor wavelength = f.reciprocal() * (2 * std::numbers::pi);
    const at::Tensor divided = at::where(wavelength > low_wavelength, f / s.factor, f);
    const at::Tensor smooth = (wavelength.reciprocal() * original - s.low_freq_factor) /
                              (s.high_freq_factor - s.low_freq_factor);
    const at::Tensor smoothed = (1 - smooth) * divided / s.factor + smooth * divided;
    const at::Tensor between = (wavelength < high_wavelength).logical_not_() *
                               (wavelength > low_wavelength).logical_not_();
    return {at::where(between, smoothed, divided)};
  }
};

// Pixtral's two planes: even frequencies, then odd.
at::Tensor evens_then_odds(const at::Tensor& f) {
  return at::cat({f.slice(-1, 0, f.size(-1), 2), f.slice(-1, 1, f.size(-1), 2)}, -1);
}

// ERNIE 4.5 VL sorts its frequencies once: those of height, of width, then of time.
at::Tensor sorted_by_plane(const at::Tensor& f, int64_t of_time) {
  const at::Tensor space = f.slice(-1, 0, f.size(-1) - of_time);
  return at::cat({evens_then_odds(space), f.slice(-1, f.size(-1) - of_time)}, -1);
}

// The dtype in which frequencies are computed for hidden states of type `dtype`.
at::ScalarType angle_dtype(const RotaryOptions& options, at::ScalarType dtype) {
  switch (options.angle_type()) {
    case rotary::AngleType::Float32: return at::kFloat;
    case rotary::AngleType::Float64:
    case rotary::AngleType::Float64Angle:
    case rotary::AngleType::Float64Frequency: return at::kDouble;
    case rotary::AngleType::Input: break;
  }
  return dtype;
}

}  // namespace

RotaryFrequencies rotary_frequencies(const RotaryOptions& options, int64_t length,
                                     at::ScalarType dtype) {
  options.validate();
  TORCH_CHECK_VALUE(length >= 0, "[rotary] length must not be negative. Got ", length);
  RotaryFrequencies result;
  // The rounding of pow() depends on the place of an entry in its thread's part.
  run_single_threaded([&] {
    const Maker maker{options, length, angle_dtype(options, dtype)};
    result = std::visit(maker, options.scaling());
  });
  if (options.angle_type() == rotary::AngleType::Float64Frequency)
    result.inv_freq = result.inv_freq.to(at::kFloat);
  if (options.precision() == Precision::Exact) result.inv_freq = exact_inv_freq(options, length);
  if (options.planes() == rotary::Planes::HeightWidth) {
    result.inv_freq = sorted_by_plane(result.inv_freq, options.sections()[2]);
  }
  if (options.planes() == rotary::Planes::EvenOdd) {
    result.inv_freq = evens_then_odds(result.inv_freq);
  }
  return result;
}

}  // namespace posenc
