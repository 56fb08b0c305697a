#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <iosfwd>
#include <optional>
#include <tuple>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/transformer/attention/disentangled_options.h"
#include "posenc/transformer/functional/attention_mask.h"

namespace posenc POSENC_EXPORT {

/// Options of DisentangledAttention.
struct DisentangledAttentionOptions {
  /// The options of DeBERTa for width `embed_dim` and `num_heads` heads.
  DisentangledAttentionOptions(int64_t embed_dim, int64_t num_heads, DisentangledOptions positions)
      : embed_dim_(embed_dim), num_heads_(num_heads), positions_(positions) {}

  /// Width E, a multiple of num_heads.
  TORCH_ARG(int64_t, embed_dim);
  /// Number of heads.
  TORCH_ARG(int64_t, num_heads);
  /// The terms of positions.
  TORCH_ARG(DisentangledOptions, positions);
  /// The factor of the scores; 1 / sqrt(n E / num_heads) unless set, n being 1 and the number of
  /// terms.
  TORCH_ARG(std::optional<double>, scale) = std::nullopt;
  /// Probability of zeroing an attention weight in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;
  /// The same for an element of the table of relative positions.
  TORCH_ARG(double, position_dropout) = 0.0;
  /// Whether keys have a bias; otherwise its rows of in_proj_bias are zeros without a gradient.
  TORCH_ARG(bool, key_bias) = true;

  POSENC_FIELDS(DisentangledAttentionOptions, embed_dim_, num_heads_, positions_, scale_,
                key_bias_);
  POSENC_TRAINING_FIELDS(dropout_, position_dropout_);
};

/// Self-attention with terms of content and of relative position: DeBERTa.
///
/// With q, k, v of H heads, the rows r of the table, r(i - j) for a query i and a key j:
/// scores(i, j) = scale (q_i . k_j + q_i . pos_key(r(i - j)) + k_j . pos_query(r(i - j))), where
/// pos_key and pos_query are projections of their own, or those of the keys and the queries.
///
/// A token that may not attend to any key attends to all tokens of its sequence alike, and padding
/// to all keys. In transformers, whose mask is the lowest number, padding is among the keys of such
/// a token too, so that what it gets depends on the rest of the batch.
///
/// x: (B, L, E), table: (R, E)  ->  (B, L, E).
///
/// ```cpp
/// posenc::DisentangledOptions positions(/*max_relative_positions=*/16);
/// posenc::DisentangledAttention attention(
///     posenc::DisentangledAttentionOptions(32, 4, positions));
/// torch::Tensor table = torch::randn({32, 32});
/// torch::Tensor y = attention->forward(torch::randn({2, 5, 32}), table);  // (2, 5, 32)
/// ```
///
/// Keys: `in_proj_weight` (3 E, E), `in_proj_bias` (3 E), `out_proj.weight` (E, E),
/// `out_proj.bias` (E); with the term and projections of its own `pos_key.weight` (E, E),
/// `pos_key.bias` (E), `pos_query.weight` (E, E), `pos_query.bias` (E).
///
/// Errors: c10::ValueError for options that do not fit, sequences that are not (B, L, E), and a
/// table of another shape.
///
/// Source: `DisentangledSelfAttention` of DeBERTa and DeBERTa v2 in transformers 5.23.
class DisentangledAttentionImpl : public Cloneable<DisentangledAttentionImpl> {
 public:
  /// A module with the given options.
  explicit DisentangledAttentionImpl(DisentangledAttentionOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the attention of x. `table` may be undefined without relative_attention.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& table,
                        const AttentionMask& mask = {});
  /// forward() and the weights, (B, H, L, L).
  std::tuple<torch::Tensor, torch::Tensor> forward_with_weights(const torch::Tensor& x,
                                                                const torch::Tensor& table,
                                                                const AttentionMask& mask = {});

  /// The keys and the queries of the table's rows, each (H, R, E / H) or undefined without its
  /// term.
  std::tuple<torch::Tensor, torch::Tensor> position_heads(const torch::Tensor& table);

  /// The factor of the scores.
  double scale() const;

  DisentangledAttentionOptions options;  ///< the options given to the constructor
  torch::Tensor in_proj_weight;          ///< (3 E, E): queries, keys, values
  torch::Tensor in_proj_bias;            ///< (3 E)
  torch::nn::Linear out_proj{nullptr},   ///< (E, E)
      pos_key{nullptr},                  ///< (E, E), of the table
      pos_query{nullptr};                ///< (E, E), of the table
  torch::nn::Dropout dropout{nullptr},   ///< of the weights
      position_dropout{nullptr};         ///< of the table

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())})

 private:
  torch::Tensor run(const torch::Tensor& x, const torch::Tensor& table, const AttentionMask& mask,
                    torch::Tensor* weights);
};

TORCH_MODULE(DisentangledAttention);

}  // namespace posenc
