#pragma once

#include "posenc/transformer/attention/multihead_attention.h"

namespace posenc {

/// The two halves of forward(), always with (B, L, E), for a layer that caches keys and values.
struct MultiheadAttentionAccess {
  /// The projections. An undefined query, or an undefined key and value, is skipped.
  static functional::Heads split_heads(const MultiheadAttentionImpl& module,
                                       const torch::Tensor& query, const torch::Tensor& key,
                                       const torch::Tensor& value) {
    return module.split_heads(query, key, value);
  }
  /// The attention and the output projection, of queries after `offset` others.
  static torch::Tensor attend_heads(const MultiheadAttentionImpl& module,
                                    const functional::Heads& heads, const AttentionMask& mask,
                                    int64_t offset = 0) {
    return module.attend_heads(heads, mask, offset);
  }
  /// The same with the weights (B, L, S), averaged over the heads, or (B, H, L, S).
  static std::tuple<torch::Tensor, torch::Tensor> attend_heads_with_weights(
      const MultiheadAttentionImpl& module, const functional::Heads& heads,
      const AttentionMask& mask, bool average) {
    return functional::attend_heads_with_weights(
        heads, module.weights(), module.func_options(module.with_bias(heads, mask, 0)), average);
  }
};

}  // namespace posenc
