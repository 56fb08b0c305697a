#include "posenc/functional/relative_position_bias.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/log.h>
#include <ATen/ops/where.h>

#include <cmath>

namespace posenc::functional {
namespace {

// Distances below this have a bucket each.
int64_t exact_distances(int64_t num_buckets, const RelativePositionFuncOptions& options) {
  const int64_t directions = options.bidirectional() ? 2 : 1;
  TORCH_CHECK_VALUE(num_buckets >= 2 * directions && num_buckets % directions == 0,
                    "[RelativePositionBias] the number of buckets must be ",
                    options.bidirectional() ? "even, and at least 4" : "at least 2", ". Got ",
                    num_buckets);
  const int64_t exact = num_buckets / directions / 2;
  TORCH_CHECK_VALUE(options.max_distance() > exact,
                    "[RelativePositionBias] max_distance must be larger than ", exact,
                    ", the number of distances with a bucket each. Got ", options.max_distance());
  return exact;
}

}  // namespace

at::Tensor relative_position_buckets(const at::Tensor& relative_positions, int64_t num_buckets,
                                     const RelativePositionFuncOptions& options) {
  TORCH_CHECK_TYPE(relative_positions.scalar_type() == at::kLong,
                   "[RelativePositionBias] relative positions must be int64. Got ",
                   relative_positions.scalar_type());
  const int64_t exact = exact_distances(num_buckets, options);
  const int64_t buckets = options.bidirectional() ? num_buckets / 2 : num_buckets;
  const at::Tensor distance =
      options.bidirectional() ? relative_positions.abs() : -relative_positions.clamp_max(0);
  // In float32, as transformers computes it: rounding decides the bucket of some distances.
  const double range =
      std::log(static_cast<double>(options.max_distance()) / static_cast<double>(exact));
  const at::Tensor step = at::log(distance.to(at::kFloat) / exact) / range * (buckets - exact);
  const at::Tensor wide = (step.to(at::kLong) + exact).clamp_max(buckets - 1);
  const at::Tensor bucket = at::where(distance < exact, distance, wide);
  return options.bidirectional() ? (relative_positions > 0).to(at::kLong) * buckets + bucket
                                 : bucket;
}

at::Tensor relative_position_bias(const at::Tensor& weight, int64_t queries, int64_t keys,
                                  const RelativePositionFuncOptions& options) {
  TORCH_CHECK_VALUE(weight.dim() == 2,
                    "[RelativePositionBias] weight must be (num_buckets, num_heads). Got ",
                    weight.sizes());
  TORCH_CHECK_VALUE(queries >= 0 && keys >= 0,
                    "[RelativePositionBias] the numbers of queries and keys must not be negative. "
                    "Got ",
                    queries, " and ", keys);
  const auto indices = weight.options().dtype(at::kLong).requires_grad(false);
  const int64_t offset = options.offset();
  const at::Tensor query = at::arange(offset, offset + queries, indices).unsqueeze(1);
  const at::Tensor bucket = relative_position_buckets(at::arange(keys, indices) - query,
                                                      weight.size(0), options);  // (L, S)
  // Heads first, so that the result is contiguous: (H, buckets) -> (H, L * S) -> (1, H, L, S)
  return weight.t().index_select(1, bucket.flatten()).view({1, weight.size(1), queries, keys});
}

}  // namespace posenc::functional
