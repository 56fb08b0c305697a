#include "posenc/positions/functional/polar_embedding.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/softplus.h>
#include <c10/util/Exception.h>

#include "core/check.h"
#include "core/tensors.h"
#include "posenc/positions/rotary/rotary.h"

namespace posenc::functional {
namespace {

void check_positions(const at::Tensor& ids) {
  TORCH_CHECK_VALUE(ids.dim() == 1 || ids.dim() == 2,
                    "[polar_angles] position_ids must be (L) or (B, L). Got ", ids.sizes());
  TORCH_CHECK_TYPE(at::isIntegralType(ids.scalar_type(), /*includeBool=*/false),
                   "[polar_angles] position_ids must be integers. Got ", ids.scalar_type());
  if (!ids.device().is_cpu() || ids.numel() == 0) return;
  const auto [low, high] = ids.aminmax();
  const auto least = low.item<int64_t>(), most = high.item<int64_t>();
  TORCH_CHECK_VALUE(least >= 0 && most < kPositionLimit,
                    "[polar_angles] positions must lie in [0, 2^31). Got ",
                    least < 0 ? least : most);
}

}  // namespace

at::Tensor polar_frequencies(int64_t dim, double base) {
  check_positive("polar_frequencies", "dim", dim);
  // One channel has the angle of a pair: the frequencies are those of twice as many channels.
  return rotary_frequencies(RotaryOptions(2 * dim, rotary::Pairing::Halves).base(base)).inv_freq;
}

at::Tensor polar_angles(const at::Tensor& given, const at::Tensor& inv_freq) {
  TORCH_CHECK_VALUE(inv_freq.defined() && inv_freq.dim() == 1,
                    "[polar_angles] inv_freq must be (D). Got ",
                    inv_freq.defined() ? c10::str(inv_freq.sizes()) : "no tensor");
  TORCH_CHECK_TYPE(inv_freq.is_floating_point(),
                   "[polar_angles] inv_freq must be floating-point. Got ", inv_freq.scalar_type());
  TORCH_CHECK_VALUE(given.defined(), "[polar_angles] position_ids must be a tensor");
  const at::Tensor position_ids = comparable(given);
  check_positions(position_ids);
  return position_ids.unsqueeze(-1).to(inv_freq.scalar_type()) *
         sent_to(inv_freq, position_ids.device());
}

at::Tensor polar_embedding(const at::Tensor& x, const at::Tensor& angles) {
  TORCH_CHECK_VALUE(x.defined() && (x.dim() == 3 || x.dim() == 4),
                    "[polar_embedding] x must be (H, L, D) or (B, H, L, D). Got ",
                    x.defined() ? c10::str(x.sizes()) : "no tensor");
  TORCH_CHECK_VALUE(angles.defined(), "[polar_embedding] angles must be a tensor");
  TORCH_CHECK_TYPE(x.is_floating_point() && angles.is_floating_point(),
                   "[polar_embedding] x and angles must be floating-point. Got ", x.scalar_type(),
                   " and ", angles.scalar_type());
  TORCH_CHECK_VALUE(angles.dim() >= 2 && angles.size(-1) == x.size(-1) &&
                        angles.size(-2) == x.size(-2) &&
                        at::is_expandable_to(angles.sizes(), x.sizes()),
                    "[polar_embedding] angles must be (L, D), or broadcastable to x. Got ",
                    angles.sizes(), " for ", x.sizes());
  const at::Tensor magnitude = at::softplus(x.to(at::kFloat));
  return at::cat({magnitude * angles.cos(), magnitude * angles.sin()}, -1).to(x.scalar_type());
}

}  // namespace posenc::functional
