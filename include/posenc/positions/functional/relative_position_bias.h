#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// Options of relative_position_buckets() and relative_position_bias().
struct RelativePositionFuncOptions {
  /// Whether keys after the query have half of the buckets to themselves, as in encoders. Otherwise
  /// they share the bucket of distance 0, as in decoders, where they are masked.
  TORCH_ARG(bool, bidirectional) = true;
  /// The distance from which on all keys share the last bucket.
  TORCH_ARG(int64_t, max_distance) = 128;
  /// The position of the first query, which is the number of keys before it.
  TORCH_ARG(int64_t, offset) = 0;
};

/// T5's buckets of relative positions: one for each of the smaller distances, and wider ones, on a
/// logarithmic scale, up to max_distance.
///
/// relative_positions: position of the key minus position of the query, any shape, int64  ->  the
/// same shape, in [0, num_buckets).
///
/// Errors: c10::TypeError for relative positions that are not int64; c10::ValueError for fewer than
/// 4 buckets (2 unless bidirectional), an odd number of them if bidirectional, and a max_distance
/// that is not larger than the number of distances with a bucket each.
///
/// Source: transformers, `T5Attention._relative_position_bucket`, bit-identical;
/// `MPNetEncoder.relative_position_bucket` with the default options.
at::Tensor relative_position_buckets(const at::Tensor& relative_positions, int64_t num_buckets,
                                     const RelativePositionFuncOptions& options = {});

/// T5's and MPNet's relative position bias, which is added to the scores of all layers:
/// ```cpp
/// auto weight = torch::randn({32, 12});  // 32 buckets, 12 heads
/// auto bias = posenc::functional::relative_position_bias(weight, 128, 128);
/// auto mask = posenc::AttentionMask::additive(bias);
/// ```
/// weight: (num_buckets, H)  ->  (1, H, queries, keys), with a gradient for the weight.
///
/// Errors: those of relative_position_buckets(); c10::ValueError for a weight of another rank and
/// negative sizes.
///
/// Source: transformers, `T5Attention.compute_bias`, `MPNetEncoder.compute_position_bias`.
at::Tensor relative_position_bias(const at::Tensor& weight, int64_t queries, int64_t keys,
                                  const RelativePositionFuncOptions& options = {});

}  // namespace functional
}  // namespace posenc
