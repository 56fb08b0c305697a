#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/functional/multihead_attention.h"

namespace posenc {

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads) {}

  /// Width E of queries and of the result; num_heads divides it.
  TORCH_ARG(int64_t, embed_dim);
  TORCH_ARG(int64_t, num_heads);
  /// Probability with which an attention weight is zeroed in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;
  TORCH_ARG(bool, bias) = true;
  /// Widths of keys and values; embed_dim unless set.
  TORCH_ARG(std::optional<int64_t>, kdim) = std::nullopt;
  TORCH_ARG(std::optional<int64_t>, vdim) = std::nullopt;
  /// Inputs are (B, L, E); false: (L, B, E).
  TORCH_ARG(bool, batch_first) = true;
  /// See functional::MultiheadAttentionFuncOptions.
  TORCH_ARG(bool, python_dropout_order) = false;
};

/// Attention in several heads; formula and errors: functional::multihead_attention().
///
/// query: (B, L, E), key: (B, S, kdim), value: (B, S, vdim)  ->  (B, L, E); lengths before batches
/// with batch_first(false).
/// Keys: `in_proj_weight` (3E, E), or `q_proj_weight`, `k_proj_weight`, `v_proj_weight` where a
/// width differs; `in_proj_bias`, `out_proj.weight`, `out_proj.bias`. Initialised as PyTorch does:
/// the same seed gives the same weights. Source: torch.nn.MultiheadAttention.
class MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(MultiheadAttentionOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& query, const torch::Tensor& key,
                        const torch::Tensor& value, const AttentionMask& mask = {});

  /// forward() in two halves, always (B, L, E): between them keys and values may meet a cache.
  functional::Heads split_heads(const torch::Tensor& query, const torch::Tensor& key,
                                const torch::Tensor& value) const;
  torch::Tensor attend_heads(const functional::Heads& heads, const AttentionMask& mask) const;

  MultiheadAttentionOptions options;
  torch::Tensor in_proj_weight;                               ///< where all widths are one
  torch::Tensor q_proj_weight, k_proj_weight, v_proj_weight;  ///< where they differ
  torch::Tensor in_proj_bias;                                 ///< undefined with bias(false)
  torch::nn::Linear out_proj{nullptr};

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({3, torch::nn::AnyValue(AttentionMask())})

 private:
  void reset_in_projection();
  functional::MultiheadAttentionWeights weights() const;
};

TORCH_MODULE(MultiheadAttention);

}  // namespace posenc
