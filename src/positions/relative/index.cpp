#include "posenc/positions/relative/index.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/log.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "positions/relative/broadcasts.h"
#include "positions/relative/limits.h"

namespace posenc {
namespace relative {
namespace {

void check_span(const char* what, int64_t span, int64_t least) {
  TORCH_CHECK_VALUE(span >= least && span <= kMostPositions, "[RelativePositionBias] ", what,
                    least == 0 ? " must not be negative" : " must be at least ",
                    least == 0 ? "" : std::to_string(least), ", and at most ", kMostPositions,
                    ". Got ", span);
}

// Distances below this have a bucket each.
int64_t exact_buckets(const Buckets& index) {
  const int64_t directions = index.bidirectional ? 2 : 1;
  TORCH_CHECK_VALUE(index.num_buckets >= 2 * directions && index.num_buckets % directions == 0,
                    "[RelativePositionBias] the number of buckets must be ",
                    index.bidirectional ? "even, and at least 4" : "at least 2", ". Got ",
                    index.num_buckets);
  TORCH_CHECK_VALUE(index.spare_rows >= 0,
                    "[RelativePositionBias] spare_rows must not be negative. Got ",
                    index.spare_rows);
  const int64_t exact = index.num_buckets / directions / 2;
  TORCH_CHECK_VALUE(index.max_distance > exact,
                    "[RelativePositionBias] max_distance must be larger than ", exact,
                    ", the number of distances with a bucket each. Got ", index.max_distance);
  return exact;
}

at::Tensor index_of(const at::Tensor& distances, const Buckets& index) {
  const int64_t exact = exact_buckets(index);
  const int64_t buckets = index.bidirectional ? index.num_buckets / 2 : index.num_buckets;
  const at::Tensor distance = index.bidirectional ? distances.abs() : -distances.clamp_max(0);
  // In float32, as transformers computes it: rounding decides the bucket of some distances.
  const double range =
      std::log(static_cast<double>(index.max_distance) / static_cast<double>(exact));
  const at::Tensor step = at::log(distance.to(at::kFloat) / exact) / range * (buckets - exact);
  const at::Tensor above =
      index.truncate_sum ? (exact + step).to(at::kLong) : exact + step.to(at::kLong);
  const at::Tensor bucket = at::where(distance < exact, distance, above.clamp_max(buckets - 1));
  return index.bidirectional ? (distances > 0).to(at::kLong) * buckets + bucket : bucket;
}

at::Tensor index_of(const at::Tensor& distances, const SignedLog& index) {
  const int64_t mid = index.buckets / 2;
  // The logarithm is of no meaning then, but only far tokens need it.
  TORCH_CHECK_VALUE(index.max_position > mid + 1 || distances.numel() == 0 ||
                        distances.abs().max().item<int64_t>() <= mid,
                    "[RelativePositionBias] max_position must be larger than ", mid + 1,
                    ", half of the buckets and one, for distances larger than ", mid, ". Got ",
                    index.max_position);
  const at::Tensor relative = -distances;
  const at::Tensor farther =
      at::where((relative < mid).logical_and(relative > -mid),
                at::scalar_tensor(mid - 1, relative.options()), relative.abs());
  // The logarithm of the range is a float32 too, and not a double as in T5.
  const at::Tensor range = at::log(
      at::scalar_tensor(static_cast<double>(index.max_position - 1) / static_cast<double>(mid),
                        relative.options().dtype(at::kFloat)));
  const at::Tensor steps =
      at::ceil(at::log(farther.to(at::kFloat) / mid) / range * (mid - 1)) + mid;
  const at::Tensor bucket =
      at::where(farther <= mid, relative.to(steps.scalar_type()), steps * at::sign(relative));
  return (bucket.to(at::kLong) + index.buckets).clamp(0, 2 * index.buckets - 1);
}

at::Tensor index_of(const at::Tensor& distances, const Clamp& index) {
  const at::Tensor signed_distances = index.query_minus_key ? -distances : distances;
  const at::Tensor limited = signed_distances.clamp(-index.left, index.right);
  return index.absolute ? limited.abs() : limited + index.left;
}

at::Tensor index_of(const at::Tensor& distances, const Shift& index) {
  return distances + index.origin;
}

void check(const Buckets& index) { exact_buckets(index); }
void check(const SignedLog& index) { check_span("buckets", index.buckets, 2); }
void check(const Clamp& index) {
  check_span("left", index.left, 0);
  check_span("right", index.right, 0);
}
void check(const Shift& index) { check_span("origin", index.origin, 0); }

int64_t rows_of(const Buckets& index) { return index.num_buckets + index.spare_rows; }
int64_t rows_of(const SignedLog& index) { return 2 * index.buckets; }
int64_t rows_of(const Clamp& index) {
  return index.absolute ? std::max(index.left, index.right) + 1 : index.left + index.right + 1;
}
int64_t rows_of(const Shift&) { return 0; }

}  // namespace
}  // namespace relative

at::Tensor relative_index(const at::Tensor& distances, const relative::Index& index) {
  TORCH_CHECK_TYPE(distances.scalar_type() == at::kLong,
                   "[RelativePositionBias] relative positions must be int64. Got ",
                   distances.scalar_type());
  return std::visit(
      [&](const auto& kind) {
        relative::check(kind);
        return relative::index_of(distances, kind);
      },
      index);
}

at::Tensor relative_index(const at::Tensor& queries, const at::Tensor& keys,
                          const relative::Index& index) {
  TORCH_CHECK_VALUE(queries.dim() >= 1 && keys.dim() >= 1,
                    "[RelativePositionBias] positions must be (..., Q) and (..., K). Got ",
                    queries.sizes(), " and ", keys.sizes());
  TORCH_CHECK_VALUE(
      relative::broadcasts(queries.sizes().slice(0, queries.dim() - 1),
                           keys.sizes().slice(0, keys.dim() - 1)),
      "[RelativePositionBias] positions of queries and keys must be of the same sequences. Got ",
      queries.sizes(), " and ", keys.sizes());
  return relative_index(keys.unsqueeze(-2) - queries.unsqueeze(-1), index);
}

int64_t relative_rows(const relative::Index& index) {
  return std::visit(
      [](const auto& kind) {
        relative::check(kind);
        return relative::rows_of(kind);
      },
      index);
}

}  // namespace posenc
