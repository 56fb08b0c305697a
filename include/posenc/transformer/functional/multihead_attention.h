#pragma once

#include <torch/arg.h>

#include <optional>
#include <tuple>
#include <utility>

#include "posenc/export.h"
#include "posenc/transformer/functional/attention_mask.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// The weights of multi-head attention, by PyTorch's names: either in_proj_weight, or one matrix
/// each for queries, keys and values. Biases may be undefined. Queries have the width Eq, which is
/// E unless the width of a head is not E / num_heads. Keys and values have the width Ekv, which is
/// Eq, or less with fewer key and value heads (grouped-query attention).
struct MultiheadAttentionWeights {
  at::Tensor in_proj_weight;   ///< (Eq + 2 Ekv, E): of queries, keys and values, stacked by rows
  at::Tensor q_proj_weight;    ///< (Eq, E)
  at::Tensor k_proj_weight;    ///< (Ekv, kdim)
  at::Tensor v_proj_weight;    ///< (Ekv, vdim)
  at::Tensor in_proj_bias;     ///< (Eq + 2 Ekv)
  at::Tensor out_proj_weight;  ///< (E, Eq), which gives the width of a head, Eq / num_heads
  at::Tensor out_proj_bias;    ///< (E)
};

/// Options of multihead_attention().
struct MultiheadAttentionFuncOptions {
  /// Attention with `num_heads` heads.
  explicit MultiheadAttentionFuncOptions(int64_t num_heads) : num_heads_(num_heads) {}

  /// Number of heads; must divide Eq.
  TORCH_ARG(int64_t, num_heads);
  /// Which keys each query may attend to; all of them by default.
  TORCH_ARG(AttentionMask, mask) = {};
  /// The factor of the scores; 1 / sqrt(Dh) unless set.
  TORCH_ARG(std::optional<double>, scale) = std::nullopt;
  /// Scores become softcap * tanh(scores / softcap), before the mask is added; not 0.
  TORCH_ARG(std::optional<double>, softcap) = std::nullopt;
  /// Probability of zeroing an attention weight, in [0, 1); applies only in training.
  TORCH_ARG(double, dropout) = 0.0;
  /// Whether dropout is applied.
  TORCH_ARG(bool, training) = false;
  /// Lays the result out in memory as (L, B, E), as torch.nn does, so that a dropout applied to it
  /// draws the same mask as in Python for the same seed. Costs a copy.
  TORCH_ARG(bool, python_dropout_order) = false;
};

/// Projections split into heads, Eq = H * Dh and Ekv = Hkv * Dh.
struct Heads {
  at::Tensor query;  ///< (B, H, L, Dh)
  at::Tensor key;    ///< (B, Hkv, S, Dh)
  at::Tensor value;  ///< (B, Hkv, S, Dh)
};

/// Multi-head attention: softmax(q k^T / sqrt(Dh) + mask) v in each head, concatenated and
/// projected.
///
/// query: (B, L, E), key: (B, S, kdim), value: (B, S, vdim)  ->  (B, L, E).
///
/// The functional counterpart of MultiheadAttention; equal to split_heads() followed by
/// attend_heads().
///
/// Errors: c10::ValueError for wrong ranks, widths and lengths and for an E that is not a multiple
/// of the number of heads; those of AttentionMask.
///
/// Source: "Attention Is All You Need", 3.2.2; torch.nn.MultiheadAttention.
at::Tensor multihead_attention(const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const MultiheadAttentionWeights& weights,
                               const MultiheadAttentionFuncOptions& options);

/// multihead_attention() and its attention weights, (B, L, S) averaged over the heads, or
/// (B, H, L, S) without `average_attn_weights`. They are what the values are multiplied by: zeros
/// for a query that may not attend to any key, and after the dropout in training. Costs memory for
/// the scores of all heads, which multihead_attention() does not store.
std::tuple<at::Tensor, at::Tensor> multihead_attention_with_weights(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const MultiheadAttentionWeights& weights, const MultiheadAttentionFuncOptions& options,
    bool average_attn_weights = true);

/// The projections only, as one matrix product if the inputs are the same tensor. An undefined
/// query, or an undefined key and value, is skipped, since keys and values may come from a cache.
Heads split_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const MultiheadAttentionWeights& weights, int64_t num_heads);

/// The attention and the output projection, (B, L, E).
at::Tensor attend_heads(const Heads& heads, const MultiheadAttentionWeights& weights,
                        const MultiheadAttentionFuncOptions& options);

/// attend_heads() and the attention weights, as multihead_attention_with_weights() returns them.
std::tuple<at::Tensor, at::Tensor> attend_heads_with_weights(
    const Heads& heads, const MultiheadAttentionWeights& weights,
    const MultiheadAttentionFuncOptions& options, bool average_attn_weights = true);

}  // namespace functional
}  // namespace posenc
