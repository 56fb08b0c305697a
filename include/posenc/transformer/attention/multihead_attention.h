// posenc-budget: one module and its options
#pragma once

// posenc-budget: the options and the methods of one class

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <tuple>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/nn/relative_position_bias.h"
#include "posenc/positions/nn/rotary_embedding.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/attention/key_value_cache.h"
#include "posenc/transformer/attention/query_growth.h"
#include "posenc/transformer/functional/multihead_attention.h"

namespace posenc POSENC_EXPORT {

struct MultiheadAttentionAccess;

/// Options of MultiheadAttention.
struct MultiheadAttentionOptions {
  /// The default options for width `embed_dim` and `num_heads` heads.
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads) {}

  /// Width E of queries and of the result; a multiple of num_heads unless head_dim is set.
  TORCH_ARG(int64_t, embed_dim);
  /// Number of heads.
  TORCH_ARG(int64_t, num_heads);
  /// Number of key and value heads (grouped-query attention); must divide num_heads; num_heads
  /// unless set.
  TORCH_ARG(std::optional<int64_t>, num_kv_heads) = std::nullopt;
  /// Width Dh of a head; embed_dim / num_heads unless set.
  TORCH_ARG(std::optional<int64_t>, head_dim) = std::nullopt;
  /// Normalises each head of queries and keys before they are rotated, by a norm of this kind; none
  /// unless set. Qwen 3: NormKind::RMS, Gemma 3: NormKind::RMSPlusOne.
  TORCH_ARG(std::optional<NormKind>, qk_norm) = std::nullopt;
  /// Whether these norms are of all heads of queries as one, and of all of keys: ESMC.
  TORCH_ARG(bool, qk_norm_whole) = false;
  /// Whether these norms have a bias, with NormKind::Layer: Phi.
  TORCH_ARG(bool, qk_norm_bias) = false;
  /// Whether each head has its own weight in these norms, (num_heads, Dh), with NormKind::Layer:
  /// Cohere, StableLM.
  TORCH_ARG(bool, qk_norm_per_head) = false;
  /// Whether these norms are of queries and keys that have been rotated: Hunyuan.
  TORCH_ARG(bool, qk_norm_after_rotary) = false;
  /// Limits queries, keys and values to -qkv_clip .. qkv_clip where they leave the projection:
  /// OLMo, MPT.
  TORCH_ARG(std::optional<double>, qkv_clip) = std::nullopt;
  /// Scores become softcap * tanh(scores / softcap), before masks and biases: Gemma 2.
  TORCH_ARG(std::optional<double>, softcap) = std::nullopt;
  /// Multiplies queries by a factor that grows with their position: Ministral 3. Needs `rotary`.
  TORCH_ARG(std::optional<QueryGrowth>, query_growth) = std::nullopt;
  /// Normalises each head of values by an RMS norm without a weight: EmbeddingGemma 2.
  TORCH_ARG(bool, value_norm) = false;
  /// Added to the mean square, or the variance, in these norms.
  TORCH_ARG(double, qk_norm_eps) = 1e-6;
  /// The factor of the scores; 1 / sqrt(Dh) unless set.
  TORCH_ARG(std::optional<double>, scale) = std::nullopt;
  /// Rotates queries and keys by their positions, and values with RotaryOptions::rotary_value; none
  /// unless set. Only AppliedTo::Heads.
  TORCH_ARG(std::optional<RotaryEmbeddingOptions>, rotary) = std::nullopt;
  /// Adds a RelativePositionBias with this index to the scores: T5's self-attention with a table of
  /// its own; none unless set. Not relative::Shift, which has no number of rows. In a decoder,
  /// relative::Buckets::bidirectional is false.
  TORCH_ARG(std::optional<relative::Index>, relative) = std::nullopt;
  /// Probability of zeroing an attention weight in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;
  /// Whether the projections have a bias.
  TORCH_ARG(bool, bias) = true;
  /// Whether queries have a bias, where `bias` gives them one; otherwise its rows of in_proj_bias
  /// are zeros that get no gradient. DINOv3's keys have none.
  TORCH_ARG(bool, query_bias) = true;
  /// The same for keys.
  TORCH_ARG(bool, key_bias) = true;
  /// The same for values.
  TORCH_ARG(bool, value_bias) = true;
  /// Whether the output projection has a bias; the same as `bias` unless set.
  TORCH_ARG(std::optional<bool>, out_bias) = std::nullopt;
  /// Width of keys; embed_dim unless set.
  TORCH_ARG(std::optional<int64_t>, kdim) = std::nullopt;
  /// Width of values; embed_dim unless set.
  TORCH_ARG(std::optional<int64_t>, vdim) = std::nullopt;
  /// Whether inputs are (B, L, E); false: (L, B, E).
  TORCH_ARG(bool, batch_first) = true;
  /// Draws Python's dropout masks; see functional::MultiheadAttentionFuncOptions.
  TORCH_ARG(bool, python_dropout_order) = false;

  POSENC_FIELDS(MultiheadAttentionOptions, embed_dim_, num_heads_, num_kv_heads_, head_dim_,
                qk_norm_, qk_norm_whole_, qk_norm_bias_, qk_norm_per_head_, qk_norm_after_rotary_,
                qkv_clip_, softcap_, query_growth_, value_norm_, qk_norm_eps_, scale_, rotary_,
                relative_, bias_, query_bias_, key_bias_, value_bias_, out_bias_, kdim_, vdim_,
                batch_first_);
  POSENC_TRAINING_FIELDS(dropout_, python_dropout_order_);
};

/// Multi-head attention. For the formula see functional::multihead_attention().
///
/// query: (B, L, E), key: (B, S, kdim), value: (B, S, vdim)  ->  (B, L, E); with batch_first(false)
/// the length comes before the batch.
///
/// All heads of queries have the width Eq = num_heads * Dh, which is E unless head_dim is set, and
/// those of keys and values the width Ekv = num_kv_heads * Dh.
///
/// ```cpp
/// posenc::MultiheadAttention attention(/*embed_dim=*/32, /*num_heads=*/4);
/// torch::Tensor x = torch::randn({2, 5, 32});
/// torch::Tensor y = attention->forward(x, x, x, posenc::AttentionMask::causal());  // (2, 5, 32)
/// ```
///
/// Keys: `in_proj_weight` (Eq + 2 Ekv, E), or `q_proj_weight`, `k_proj_weight` and `v_proj_weight`
/// if the widths differ; `in_proj_bias`, `out_proj.weight`, `out_proj.bias`; with
/// qk_norm `q_norm.weight` and `k_norm.weight`, (Dh), or (Eq) and (Ekv) with qk_norm_whole, or
/// (num_heads, Dh) and (num_kv_heads, Dh) with qk_norm_per_head, and biases with qk_norm_bias; with
/// a rotary embedding `rotary.inv_freq`, which is not in PyTorch's state_dict; with `relative`
/// `relative_attention_bias.weight` (rows, num_heads), which is added to the scores of query i and
/// key j by the distance j - i, and in step() by that of the tokens' places in the cache. The same
/// seed gives the same initial weights as in PyTorch.
///
/// Errors: those of functional::multihead_attention() and RotaryEmbedding.
///
/// Source: torch.nn.MultiheadAttention.
class MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  /// A module with the default options.
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  /// A module with the given options.
  explicit MultiheadAttentionImpl(MultiheadAttentionOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the attention of `query` to `key` and `value`, with the shape of `query`. A rotary
  /// embedding rotates queries and keys of one length by positions 0, 1, ... or by `position_ids`,
  /// (L) or (B, L). Where their lengths differ, `position_ids` are those of the queries, and those
  /// of the keys, `key_position_ids`, (S) or (B, S), are required as well.
  torch::Tensor forward(const torch::Tensor& query, const torch::Tensor& key,
                        const torch::Tensor& value, const AttentionMask& mask = {},
                        const torch::Tensor& position_ids = {},
                        const torch::Tensor& key_position_ids = {});

  /// forward() and the attention weights, (B, L, S) averaged over the heads, or (B, H, L, S)
  /// without `average_attn_weights`: torch.nn's need_weights. For what they are see
  /// functional::multihead_attention_with_weights().
  std::tuple<torch::Tensor, torch::Tensor> forward_with_weights(
      const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
      const AttentionMask& mask = {}, bool average_attn_weights = true,
      const torch::Tensor& position_ids = {}, const torch::Tensor& key_position_ids = {});

  /// An empty cache for `capacity` tokens of `batch` sequences, in the module's dtype and on its
  /// device. With a window, which the masks of step() then have, it keeps what that leaves.
  KeyValueCache make_cache(int64_t batch, int64_t capacity,
                           std::optional<int64_t> window = std::nullopt) const;

  /// Causal self-attention of the next tokens x (B, t, E)  ->  (B, t, E), whose rotated keys and
  /// values are appended to `cache`. Steps of any size give the results of forward() for the whole
  /// sequence with AttentionMask::causal(), unless the frequencies of the rotary embedding depend
  /// on the length of the call (LengthRule). `mask` is over the new tokens as queries and all
  /// tokens so far as keys, and is combined with it; a causal() in it counts from the new tokens.
  /// Positions continue from the cache unless `position_ids` are given. For inference, with
  /// batch_first only, and with xPos only if it has an xpos_middle. An error leaves the cache as it
  /// was.
  torch::Tensor step(const torch::Tensor& x, KeyValueCache& cache, const AttentionMask& mask = {},
                     const torch::Tensor& position_ids = {});

  MultiheadAttentionOptions options;    ///< the options given to the constructor
  torch::Tensor in_proj_weight;         ///< (Eq + 2 Ekv, E), if all widths are equal
  torch::Tensor q_proj_weight;          ///< (Eq, E), if a width differs
  torch::Tensor k_proj_weight;          ///< (Ekv, kdim), if a width differs
  torch::Tensor v_proj_weight;          ///< (Ekv, vdim), if a width differs
  torch::Tensor in_proj_bias;           ///< (Eq + 2 Ekv), undefined with bias(false)
  torch::nn::Linear out_proj{nullptr};  ///< the output projection, from Eq to E
  TransformerNorm q_norm{nullptr};      ///< of the queries, with qk_norm
  TransformerNorm k_norm{nullptr};      ///< of the keys, with qk_norm
  RotaryEmbedding rotary{nullptr};      ///< null without a rotary embedding
  RelativePositionBias relative_attention_bias{nullptr};  ///< with options.relative

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({3, torch::nn::AnyValue(AttentionMask())},
                                  {4, torch::nn::AnyValue(torch::Tensor())},
                                  {5, torch::nn::AnyValue(torch::Tensor())})

 private:
  friend struct MultiheadAttentionAccess;

  int64_t head_dim() const;
  void reset_in_projection();
  void apply_positions(functional::Heads& heads, int64_t offset, const torch::Tensor& position_ids,
                       const torch::Tensor& key_position_ids);
  void normalise(functional::Heads& heads) const;
  void rotate(functional::Heads& heads, int64_t offset, const torch::Tensor& position_ids,
              const torch::Tensor& key_position_ids);
  void rotate_apart(functional::Heads& heads, const torch::Tensor& position_ids,
                    const torch::Tensor& key_position_ids);
  functional::Heads split_heads(const torch::Tensor& query, const torch::Tensor& key,
                                const torch::Tensor& value) const;
  functional::Heads heads_of(const torch::Tensor& query, const torch::Tensor& key,
                             const torch::Tensor& value, const torch::Tensor& position_ids,
                             const torch::Tensor& key_position_ids);
  AttentionMask with_bias(const functional::Heads& heads, const AttentionMask& mask,
                          int64_t offset) const;
  torch::Tensor attend_heads(const functional::Heads& heads, const AttentionMask& mask,
                             int64_t offset = 0) const;
  functional::MultiheadAttentionFuncOptions func_options(const AttentionMask& mask) const;
  functional::MultiheadAttentionWeights weights() const;
};

TORCH_MODULE(MultiheadAttention);

}  // namespace posenc
