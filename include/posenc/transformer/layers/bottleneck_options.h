#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The inner part of a BottleneckEncoderLayer, in the terms of transformers' MobileBertConfig.
struct BottleneckOptions {
  /// The options of MobileBERT for a width of the attention and the feed-forward networks.
  explicit BottleneckOptions(int64_t intra_bottleneck_size)
      : intra_bottleneck_size_(intra_bottleneck_size) {}

  /// Width T of the attention and the feed-forward networks, a multiple of num_heads.
  TORCH_ARG(int64_t, intra_bottleneck_size);
  /// Whether x is projected to that width and the result back; false: T is d_model.
  TORCH_ARG(bool, use_bottleneck) = true;
  /// Whether queries, keys and values are projected from the bottleneck; false: from x, but for
  /// key_query_shared_bottleneck.
  TORCH_ARG(bool, use_bottleneck_attention) = false;
  /// Whether queries and keys have a bottleneck of their own, which use_bottleneck_attention leaves
  /// unused.
  TORCH_ARG(bool, key_query_shared_bottleneck) = true;
  /// Number of feed-forward networks.
  TORCH_ARG(int64_t, num_feedforward_networks) = 1;
  /// Added to the variance in the norm of the last network; layer_norm_eps unless set.
  TORCH_ARG(std::optional<double>, last_norm_eps) = std::nullopt;

  POSENC_FIELDS(BottleneckOptions, intra_bottleneck_size_, use_bottleneck_,
                use_bottleneck_attention_, key_query_shared_bottleneck_, num_feedforward_networks_,
                last_norm_eps_);
};

}  // namespace posenc
