#pragma once

#include <torch/arg.h>

#include <utility>

#include "posenc/functional/attention_mask.h"

namespace posenc::functional {

/// PyTorch's names. Either in_proj_weight (3E, E), which holds the projections of queries, keys and
/// values stacked by rows, or one matrix for each of the three. Biases may be undefined.
struct MultiheadAttentionWeights {
  at::Tensor in_proj_weight;
  at::Tensor q_proj_weight, k_proj_weight, v_proj_weight;  ///< (E, E), (E, kdim), (E, vdim)
  at::Tensor in_proj_bias;                                 ///< (3E)
  at::Tensor out_proj_weight, out_proj_bias;               ///< (E, E), (E)
};

struct MultiheadAttentionFuncOptions {
  explicit MultiheadAttentionFuncOptions(int64_t num_heads) : num_heads_(num_heads) {}

  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(AttentionMask, mask) = {};
  /// Probability with which an attention weight is zeroed, in [0, 1); only while training.
  TORCH_ARG(double, dropout) = 0.0;
  TORCH_ARG(bool, training) = false;
  /// The result's memory is (L, B, E) as in torch.nn, so that a dropout after it draws, from the
  /// same seed, the same mask as Python's. Costs a copy.
  TORCH_ARG(bool, python_dropout_order) = false;
};

/// Projections split into heads: (B, H, L, Dh) and twice (B, H, S, Dh), E = H * Dh.
struct Heads {
  at::Tensor query, key, value;
};

/// Multi-head attention: heads of softmax(q k^T / sqrt(Dh) + mask) v, joined and projected.
///
/// query: (B, L, E), key: (B, S, kdim), value: (B, S, vdim)  ->  (B, L, E).
/// The functional counterpart of MultiheadAttention: split_heads(), then attend_heads(). Throws
/// c10::ValueError for other ranks, widths and lengths and for an E that the heads do not divide;
/// errors of the mask: AttentionMask. Source: "Attention Is All You Need", 3.2.2;
/// torch.nn.MultiheadAttention.
at::Tensor multihead_attention(const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const MultiheadAttentionWeights& weights,
                               const MultiheadAttentionFuncOptions& options);

/// The projections alone, one matrix product for inputs that are one tensor. An undefined query, or
/// undefined key and value, is left out: keys and values may come from a cache.
Heads split_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const MultiheadAttentionWeights& weights, int64_t num_heads);

/// The attention and the projection of its result, (B, L, E).
at::Tensor attend_heads(const Heads& heads, const MultiheadAttentionWeights& weights,
                        const MultiheadAttentionFuncOptions& options);

}  // namespace posenc::functional
