#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/functional/multihead_attention.h"

namespace posenc POSENC_EXPORT {

struct MultiheadAttentionAccess;

/// Options of MultiheadAttention.
struct MultiheadAttentionOptions {
  /// The default options for width `embed_dim` and `num_heads` heads.
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads) {}

  /// Width E of queries and of the result; a multiple of num_heads.
  TORCH_ARG(int64_t, embed_dim);
  /// Number of heads.
  TORCH_ARG(int64_t, num_heads);
  /// Probability of zeroing an attention weight in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;
  /// Whether the projections have a bias.
  TORCH_ARG(bool, bias) = true;
  /// Width of keys; embed_dim unless set.
  TORCH_ARG(std::optional<int64_t>, kdim) = std::nullopt;
  /// Width of values; embed_dim unless set.
  TORCH_ARG(std::optional<int64_t>, vdim) = std::nullopt;
  /// Whether inputs are (B, L, E); false: (L, B, E).
  TORCH_ARG(bool, batch_first) = true;
  /// Draws Python's dropout masks; see functional::MultiheadAttentionFuncOptions.
  TORCH_ARG(bool, python_dropout_order) = false;
};

/// Multi-head attention. For the formula see functional::multihead_attention().
///
/// query: (B, L, E), key: (B, S, kdim), value: (B, S, vdim)  ->  (B, L, E); with batch_first(false)
/// the length comes before the batch.
///
/// Keys: `in_proj_weight` (3E, E), or `q_proj_weight`, `k_proj_weight` and `v_proj_weight` if the
/// widths differ; `in_proj_bias`, `out_proj.weight`, `out_proj.bias`. The same seed gives the same
/// initial weights as in PyTorch.
///
/// Errors: those of functional::multihead_attention().
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

  /// Returns the attention of `query` to `key` and `value`, with the shape of `query`.
  torch::Tensor forward(const torch::Tensor& query, const torch::Tensor& key,
                        const torch::Tensor& value, const AttentionMask& mask = {});

  MultiheadAttentionOptions options;    ///< the options given to the constructor
  torch::Tensor in_proj_weight;         ///< (3E, E), if all widths are equal
  torch::Tensor q_proj_weight;          ///< (E, E), if a width differs
  torch::Tensor k_proj_weight;          ///< (E, kdim), if a width differs
  torch::Tensor v_proj_weight;          ///< (E, vdim), if a width differs
  torch::Tensor in_proj_bias;           ///< (3E), undefined with bias(false)
  torch::nn::Linear out_proj{nullptr};  ///< the output projection

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({3, torch::nn::AnyValue(AttentionMask())})

 private:
  friend struct MultiheadAttentionAccess;

  void reset_in_projection();
  functional::Heads split_heads(const torch::Tensor& query, const torch::Tensor& key,
                                const torch::Tensor& value) const;
  torch::Tensor attend_heads(const functional::Heads& heads, const AttentionMask& mask) const;
  functional::MultiheadAttentionWeights weights() const;
};

TORCH_MODULE(MultiheadAttention);

}  // namespace posenc
