#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/real.h>
#include <ATen/ops/sin.h>
#include <c10/util/Exception.h>

#include "posenc/sinusoid/rotary.h"
#include "sinusoid/frequency.h"
#include "sinusoid/rotary/exact.h"
#include "sinusoid/rotary/planes.h"

namespace posenc {
namespace {

constexpr int64_t kMostPositions = int64_t{1} << 31;

void check_dtype(at::ScalarType dtype) {
  TORCH_CHECK_TYPE(at::isFloatingType(dtype), "[rotary] cos and sin must be floating-point. Got ",
                   dtype);
}

// Positions on another device are not read back.
void check_positions(const RotaryOptions& o, const at::Tensor& ids) {
  TORCH_CHECK_TYPE(at::isIntegralType(ids.scalar_type(), /*includeBool=*/false),
                   "[rotary] position_ids must be integers. Got ", ids.scalar_type());
  const int64_t planes = o.plane_count();
  if (o.axial()) {
    TORCH_CHECK_VALUE((ids.dim() == 2 || ids.dim() == 3) && ids.size(-1) == planes,
                      "[rotary] position_ids must be (N, ", planes, ") or (B, N, ", planes,
                      "). Got ", ids.sizes());
  } else {
    const bool has_planes = ids.dim() == 3 && ids.size(0) == planes;
    TORCH_CHECK_VALUE(ids.dim() == 1 || ids.dim() == 2 || (planes > 1 && has_planes),
                      "[rotary] position_ids must be (L) or (B, L)",
                      planes > 1 ? c10::str(" or (", planes, ", B, L)") : c10::str(""), ". Got ",
                      ids.sizes());
  }
  if (!ids.device().is_cpu() || ids.numel() == 0) return;
  const auto [least, most] = ids.aminmax();
  TORCH_CHECK_VALUE(least.item<int64_t>() >= 0 && most.item<int64_t>() < kMostPositions,
                    "[rotary] positions must lie in [0, 2^31). Got ",
                    least.item<int64_t>() < 0 ? least.item<int64_t>() : most.item<int64_t>());
}

// (planes, ..., L), or as they are without planes
at::Tensor by_plane(const RotaryOptions& o, const at::Tensor& ids) {
  if (o.axial()) return ids.movedim(-1, 0);
  if (o.planes() == rotary::Planes::One || ids.dim() == 3) return ids;
  std::vector<int64_t> sizes = ids.sizes().vec();
  sizes.insert(sizes.begin(), o.plane_count());
  return ids.unsqueeze(0).expand(sizes);
}

at::Tensor in_dtype(const RotaryOptions& o, const at::Tensor& t, at::ScalarType dtype) {
  return o.cos_type() == rotary::CosType::Input ? t.to(dtype) : t;
}

RotaryCosSin reference(const RotaryOptions& o, const RotaryFrequencies& f, const at::Tensor& ids) {
  warm_up_vector_math();
  const at::Tensor angles = ids.unsqueeze(-1).to(at::kFloat) * f.inv_freq.to(ids.device());
  if (o.cos_layout() == rotary::CosLayout::Complex) {
    const at::Tensor rotations = at::polar(at::ones_like(angles), angles) * f.attention_scaling;
    return {at::real(rotations), at::imag(rotations)};
  }
  return {at::cos(angles) * f.attention_scaling, at::sin(angles) * f.attention_scaling};
}

}  // namespace

RotaryCosSin rotary_cos_sin(const RotaryOptions& options, const at::Tensor& position_ids,
                            at::ScalarType dtype) {
  int64_t length = 0;
  if (options.length_dependent() && position_ids.defined() && position_ids.numel() > 0) {
    check_positions(options, position_ids);
    length = position_ids.max().item<int64_t>() + 1;
  }
  return rotary_cos_sin(options, rotary_frequencies(options, length), position_ids, dtype);
}

RotaryCosSin rotary_cos_sin(const RotaryOptions& options, const RotaryFrequencies& frequencies,
                            const at::Tensor& position_ids, at::ScalarType dtype) {
  options.validate();
  check_dtype(dtype);
  TORCH_CHECK_VALUE(position_ids.defined(), "[rotary] position_ids must be a tensor. Got none");
  check_positions(options, position_ids);
  const bool exact = options.precision() == Precision::Exact;
  const at::Tensor& inv_freq = frequencies.inv_freq;
  const int64_t count = (options.frequency_dim() + 1) / 2;
  TORCH_CHECK_VALUE(
      inv_freq.defined() && inv_freq.dim() == (exact ? 2 : 1) && inv_freq.size(-1) == count,
      "[rotary] inv_freq must be (", exact ? "2, " : "", count, "). Got ", inv_freq.sizes());
  const at::NoGradGuard no_grad;
  const at::Tensor ids = by_plane(options, position_ids);
  const RotaryCosSin entries = exact ? exact_cos_sin(options, frequencies, ids, dtype)
                                     : reference(options, frequencies, ids);
  return {in_dtype(options, combine_planes(options, entries.cos), dtype),
          in_dtype(options, combine_planes(options, entries.sin), dtype)};
}

}  // namespace posenc
