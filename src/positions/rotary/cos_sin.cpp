#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/real.h>
#include <ATen/ops/sin.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cmath>

#include "core/check.h"
#include "core/tensors.h"
#include "posenc/positions/rotary/rotary.h"
#include "positions/rotary/exact.h"
#include "positions/rotary/planes.h"
#include "positions/sinusoid/frequency.h"

namespace posenc {
namespace {

void check_dtype(at::ScalarType dtype) {
  TORCH_CHECK_TYPE(at::isFloatingType(dtype), "[rotary] cos and sin must be floating-point. Got ",
                   dtype);
}

void check_shape(const RotaryOptions& o, const at::Tensor& ids) {
  const int64_t planes = o.plane_count();
  if (o.axial()) {
    const int64_t numbers = planes + (o.modulated() ? 1 : 0);
    TORCH_CHECK_VALUE((ids.dim() == 2 || ids.dim() == 3) && ids.size(-1) == numbers,
                      "[rotary] position_ids must be (N, ", numbers, ") or (B, N, ", numbers,
                      "). Got ", ids.sizes());
    return;
  }
  const bool has_planes = ids.dim() == 3 && ids.size(0) == planes;
  TORCH_CHECK_VALUE(ids.dim() == 1 || ids.dim() == 2 || (planes > 1 && has_planes),
                    "[rotary] position_ids must be (L) or (B, L)",
                    planes > 1 ? c10::str(" or (", planes, ", B, L)") : c10::str(""), ". Got ",
                    ids.sizes());
}

// Positions on another device are not read back.
void check_positions(const RotaryOptions& o, const at::Tensor& ids) {
  const at::ScalarType type = ids.scalar_type();
  const bool real = o.axial() && (type == at::kFloat || type == at::kDouble);
  TORCH_CHECK_TYPE(real || at::isIntegralType(type, /*includeBool=*/false),
                   "[rotary] position_ids must be integers",
                   o.axial() ? ", float32 or float64. Got " : ". Got ", type);
  check_shape(o, ids);
  if (!ids.device().is_cpu() || ids.numel() == 0) return;
  const auto [low, high] = ids.aminmax();
  const auto least = low.item<double>(), most = high.item<double>();
  const bool above = least >= 0 || (o.axial() && least > -kPositionLimit);
  const double wrong = above ? most : least;
  TORCH_CHECK_VALUE(above && most < kPositionLimit, "[rotary] positions must lie in ",
                    o.axial() ? "(-2^31, 2^31)" : "[0, 2^31)", ". Got ",
                    std::isnan(wrong) ? std::string("nan") : fmt::format("{}", wrong));
}

// (planes, ..., L), or as they are without planes
at::Tensor by_plane(const RotaryOptions& o, const at::Tensor& ids) {
  if (o.axial()) return ids.movedim(-1, 0).slice(0, 0, o.plane_count());
  if (o.planes() == rotary::Planes::One || ids.dim() == 3) return ids;
  std::vector<int64_t> sizes = ids.sizes().vec();
  sizes.insert(sizes.begin(), o.plane_count());
  return ids.unsqueeze(0).expand(sizes);
}

// Rounds through float32, to which the systems round float64 results first.
at::Tensor rounded(const at::Tensor& entries, at::ScalarType dtype) {
  const bool twice = entries.scalar_type() == at::kDouble && at::isReducedFloatingType(dtype);
  return (twice ? entries.to(at::kFloat) : entries).to(dtype);
}

at::ScalarType cos_dtype(const RotaryOptions& o, at::ScalarType dtype) {
  switch (o.cos_type()) {
    case rotary::CosType::Input: return dtype;
    case rotary::CosType::Float32: return at::kFloat;
    case rotary::CosType::Float64: break;
  }
  return at::kDouble;
}

// Positions (..., L) and frequencies (n) -> (..., L, n), divided; modulation: (L) or (B, L).
at::Tensor angles_of(const RotaryOptions& o, const at::Tensor& inv_freq, const at::Tensor& ids,
                     const at::Tensor& modulation, double divisor) {
  at::Tensor positions = ids.unsqueeze(-1).to(inv_freq.scalar_type());
  if (o.position_scale() != 1.0) positions = positions * o.position_scale();
  const bool divides = o.frequency() == rotary::Frequency::PowerDivisor;
  at::Tensor angles = divides ? positions / inv_freq : positions * inv_freq;
  if (o.angle_type() == rotary::AngleType::Float64Angle) angles = angles.to(at::kFloat);
  if (divisor != 1.0) angles = angles / divisor;
  if (!modulation.defined()) return angles;
  return angles * modulation.unsqueeze(-1).to(angles.scalar_type());
}

RotaryCosSin reference(const RotaryOptions& o, const RotaryFrequencies& f, const at::Tensor& ids,
                       const at::Tensor& modulation, double divisor) {
  const at::Tensor angles =
      angles_of(o, sent_to(f.inv_freq, ids.device()), ids, modulation, divisor);
  if (o.cos_layout() == rotary::CosLayout::Complex) {
    const at::Tensor rotations = at::polar(at::ones_like(angles), angles) * f.attention_scaling;
    return {at::real(rotations), at::imag(rotations)};
  }
  return {at::cos(angles) * f.attention_scaling, at::sin(angles) * f.attention_scaling};
}

// xPos's factors, (..., n), which grow or shrink from the middle of the positions.
at::Tensor xpos_scale(const RotaryOptions& o, const at::Tensor& ids) {
  const auto dim = static_cast<double>(o.dim());
  const at::Tensor rates =
      (at::arange(0, o.dim(), 2, at::TensorOptions(ids.device()).dtype(at::kFloat)) + 0.4 * dim) /
      (1.4 * dim);
  const at::Tensor whole = ids.to(at::kLong);  // narrower integers would wrap around
  const at::Tensor distance =
      o.xpos_middle() ? whole - *o.xpos_middle() : whole - (whole.max() + 1).div(2, "floor");
  const at::Tensor powers = distance.to(at::kFloat) / o.xpos_scale_base();
  return at::pow(rates, powers.unsqueeze(-1));
}

// cos and sin of each plane.
struct PlaneTables {
  std::vector<at::Tensor> cos, sin;
};

PlaneTables plane_tables(const RotaryOptions& o, const RotaryFrequencies& frequencies,
                         const at::Tensor& position_ids, at::ScalarType dtype) {
  const at::Tensor ids = by_plane(o, position_ids);
  const at::Tensor modulation =
      o.modulated() ? position_ids.select(-1, o.plane_count()) : at::Tensor();
  const auto table = [&](const at::Tensor& inv_freq, const at::Tensor& positions, double divisor) {
    const RotaryFrequencies f{inv_freq, frequencies.attention_scaling};
    if (o.precision() == Precision::Exact)
      return exact_cos_sin(o, f, positions, cos_dtype(o, dtype));
    return reference(o, f, positions, modulation, divisor);
  };
  PlaneTables result;
  if (o.shares_frequencies()) {
    const RotaryCosSin all = table(frequencies.inv_freq, ids, o.angle_divisor());
    if (o.planes() == rotary::Planes::One) return {{all.cos}, {all.sin}};
    return {all.cos.unbind(0), all.sin.unbind(0)};
  }
  int64_t begin = 0, plane = -1;
  for (const int64_t dim : o.plane_dims()) {
    ++plane;
    if (dim == 0) continue;  // no columns
    const at::Tensor own = frequencies.inv_freq.slice(-1, begin, begin + dim / 2);
    const double divisor = o.axis_divisors().empty() ? o.angle_divisor() : o.axis_divisors()[plane];
    const RotaryCosSin one = table(own.contiguous(), ids.select(0, plane), divisor);
    result.cos.push_back(one.cos);
    result.sin.push_back(one.sin);
    begin += dim / 2;
  }
  return result;
}

// How often a row holds each entry, if it has one plane and all its entries are of the same
// position.
Copies copies_of(const RotaryOptions& o) {
  if (o.planes() != rotary::Planes::One) return Copies::One;
  switch (o.cos_layout()) {
    case rotary::CosLayout::Halves: return Copies::Halves;
    case rotary::CosLayout::Pairs: return Copies::Pairs;
    default: return Copies::One;
  }
}

}  // namespace

RotaryCosSin rotary_cos_sin(const RotaryOptions& options, const at::Tensor& given,
                            at::ScalarType dtype) {
  const at::Tensor position_ids = comparable(given);
  int64_t length = 0;
  if (options.length_dependent() && position_ids.defined() && position_ids.numel() > 0) {
    check_positions(options, position_ids);
    length = position_ids.max().item<int64_t>() + 1;
  }
  return rotary_cos_sin(options, rotary_frequencies(options, length, dtype), position_ids, dtype);
}

RotaryCosSin rotary_cos_sin(const RotaryOptions& options, const RotaryFrequencies& frequencies,
                            const at::Tensor& given, at::ScalarType dtype) {
  options.validate();
  check_dtype(dtype);
  TORCH_CHECK_VALUE(given.defined(), "[rotary] position_ids must be a tensor");
  const at::Tensor position_ids = comparable(given);
  check_positions(options, position_ids);
  const bool exact = options.precision() == Precision::Exact;
  const at::Tensor& inv_freq = frequencies.inv_freq;
  const int64_t count = options.frequency_count();
  TORCH_CHECK_VALUE(
      inv_freq.defined() && inv_freq.dim() == (exact ? 2 : 1) && inv_freq.size(-1) == count,
      "[rotary] inv_freq must be (", exact ? "2, " : "", count, "). Got ", inv_freq.sizes());
  const bool recorded =
      at::GradMode::is_enabled() && (inv_freq.requires_grad() || position_ids.requires_grad());
  TORCH_CHECK_VALUE(!recorded || !exact,
                    "[rotary] Precision::Exact records no gradient: frequencies and positions must "
                    "not require one. Got ones that do");
  const c10::AutoGradMode mode(recorded);
  if (!exact) warm_up_vector_math();
  const at::ScalarType type = cos_dtype(options, dtype);
  const Copies copies = exact ? copies_of(options) : Copies::One;
  RotaryCosSin result;
  if (copies != Copies::One) {
    result = exact_cos_sin(options, frequencies, position_ids, type, copies);
  } else {
    const PlaneTables planes = plane_tables(options, frequencies, position_ids, dtype);
    result.cos = rounded(combine_planes(options, planes.cos, 1.0), type);
    result.sin = rounded(combine_planes(options, planes.sin, 0.0), type);
  }
  if (options.xpos_scale_base() != 0.0) {
    result.scale = position_ids.numel() == 0
                       ? at::empty_like(result.cos, at::kFloat)
                       : combine_planes(options, {xpos_scale(options, position_ids)}, 1.0);
  }
  return result;
}

}  // namespace posenc
