#include "posenc/positions/relative/alibi.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "positions/relative/limits.h"

namespace posenc {
namespace {

// The first of n slopes, and the ratio of each to the one before.
double first_slope(int64_t n) {
  return std::pow(2.0, -std::pow(2.0, -(std::log2(static_cast<double>(n)) - 3)));
}

// Heads that are no power of two take the rest from twice as many, every second one.
at::Tensor bloom_slopes(int64_t heads) {
  const auto closest = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  const auto powers = [](int64_t n, int64_t count, int64_t step) {
    const at::Tensor base = at::full({}, first_slope(n), at::kFloat);
    return at::pow(base, at::arange(1, 1 + step * count, step, at::kInt));
  };
  const at::Tensor slopes = powers(closest, closest, 1);
  if (closest == heads) return slopes;
  return at::cat({slopes, powers(2 * closest, heads - closest, 2)});
}

at::Tensor mpt_slopes(int64_t heads, double bias_max) {
  const auto next = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(heads)));
  const at::Tensor powers =
      at::arange(1, next + 1, at::kLong).to(at::kFloat) * (bias_max / static_cast<double>(next));
  const at::Tensor slopes = at::pow(2, powers).reciprocal();
  if (next == heads) return slopes;
  return at::cat({slopes.slice(0, 1, next, 2), slopes.slice(0, 0, next, 2)}).slice(0, 0, heads);
}

at::Tensor x_transformers_slopes(int64_t heads) {
  const auto closest = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> slopes;
  const auto add = [&](int64_t n, int64_t count, int64_t step) {
    const double start = first_slope(n);
    for (int64_t i = 0; i < count; ++i)
      slopes.push_back(start * std::pow(start, static_cast<double>(i * step)));
  };
  add(closest, closest, 1);
  add(2 * closest, heads - closest, 2);
  return at::tensor(slopes, at::kDouble).to(at::kFloat);
}

}  // namespace

at::Tensor alibi_slopes(int64_t heads, relative::Slopes kind, double bias_max) {
  TORCH_CHECK_VALUE(heads > 0 && heads <= relative::kMostPatches,
                    "[alibi_slopes] heads must be positive, and at most ", relative::kMostPatches,
                    ". Got ", heads);
  TORCH_CHECK_VALUE(bias_max > 0 && std::isfinite(bias_max),
                    "[alibi_slopes] bias_max must be positive. Got ", bias_max);
  switch (kind) {
    case relative::Slopes::Bloom: return bloom_slopes(heads);
    case relative::Slopes::Mpt: return mpt_slopes(heads, bias_max);
    case relative::Slopes::XTransformers: break;
  }
  return x_transformers_slopes(heads);
}

at::Tensor alibi_slopes(int64_t heads, const relative::Alibi& alibi) {
  const at::Tensor slopes = alibi_slopes(heads, alibi.slopes, alibi.bias_max);
  return alibi.factor == 1.0 ? slopes : slopes * alibi.factor;
}

at::Tensor alibi_positions(const at::Tensor& is_token) {
  TORCH_CHECK_TYPE(!is_token.is_floating_point() && !is_token.is_complex(),
                   "[alibi_positions] the mask must be bool or integers. Got ",
                   is_token.scalar_type());
  TORCH_CHECK_VALUE(is_token.dim() == 2, "[alibi_positions] the mask must be (B, K). Got ",
                    is_token.sizes());
  const at::Tensor mask = is_token.to(at::kLong);
  return (mask.cumsum(-1) - 1) * mask;
}

}  // namespace posenc
