#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <iosfwd>
#include <optional>
#include <tuple>
#include <utility>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/relative/scores.h"
#include "posenc/transformer/attention/transformer_xl_options.h"
#include "posenc/transformer/functional/attention_mask.h"

namespace posenc POSENC_EXPORT {

/// Options of TransformerXLAttention.
struct TransformerXLAttentionOptions {
  /// The options of Transformer-XL for width `embed_dim` and `num_heads` heads.
  TransformerXLAttentionOptions(int64_t embed_dim, int64_t num_heads,
                                TransformerXLOptions positions)
      : embed_dim_(embed_dim), num_heads_(num_heads), positions_(std::move(positions)) {}

  /// Width E, a multiple of num_heads.
  TORCH_ARG(int64_t, embed_dim);
  /// Number of heads.
  TORCH_ARG(int64_t, num_heads);
  /// The relative positions.
  TORCH_ARG(TransformerXLOptions, positions);
  /// The factor of the scores; 1 / sqrt(E / num_heads) unless set.
  TORCH_ARG(std::optional<double>, scale) = std::nullopt;
  /// Probability of zeroing an attention weight in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;
  /// Whether the projections of queries, keys and values have a bias: those of conformers.
  TORCH_ARG(bool, bias) = false;
  /// Whether that of the output has one.
  TORCH_ARG(bool, out_bias) = false;

  POSENC_FIELDS(TransformerXLAttentionOptions, embed_dim_, num_heads_, positions_, scale_, bias_,
                out_bias_);
  POSENC_TRAINING_FIELDS(dropout_);
};

/// Self-attention whose queries are also multiplied by the keys of distances: Transformer-XL.
///
/// With q, k, v of H heads, and r(i - j) the projected row of the distance of a query i and a key
/// j: scores(i, j) = scale ((q_i + content_bias) . k_j + (q_i + position_bias) . r(i - j)), and
/// with segments + scale (q_i + segment_bias) . segment_embed[whether the segments differ].
///
/// A token that may not attend to any key attends to all tokens of its sequence alike, and padding
/// to all keys. In transformers, whose mask is a very low number, padding is among the keys of such
/// a token too, so that what it gets depends on the rest of the batch.
///
/// x: (B, L, E), table: (G, 2 L - 1, E), the rows of positions L - 1, ..., 1 - L for sequences
/// 0 .. B / G - 1, and so on, segments: integers (B, L) or undefined  ->  (B, L, E).
///
/// ```cpp
/// const posenc::TransformerXLOptions positions(posenc::SinusoidOptions(/*dim=*/32));
/// const posenc::TransformerXLAttentionOptions options(32, /*num_heads=*/4, positions);
/// posenc::TransformerXLAttention attention(options);
/// const torch::Tensor distances = torch::arange(4, -5, -1);
/// torch::Tensor table = posenc::sinusoid_rows(positions.sinusoid(), distances).unsqueeze(0);
/// torch::Tensor y = attention->forward(torch::randn({2, 5, 32}), table);
/// ```
///
/// Keys: `in_proj_weight` (3 E, E), `in_proj_bias` (3 E) with bias, `out_proj.weight` (E, E),
/// `out_proj.bias` (E) with out_bias, `position_proj.weight` (E, E), `content_bias` and
/// `position_bias` (H, E / H); with segments `segment_bias` (H, E / H) and `segment_embed`
/// (2, H, E / H).
///
/// Errors: c10::ValueError for options that do not fit, sequences that are not (B, L, E), a table
/// or segments of another shape; c10::TypeError for segments that are not integers.
///
/// Source: `XLNetRelativeAttention` and `Wav2Vec2ConformerSelfAttention` in transformers 5.23.
class TransformerXLAttentionImpl : public Cloneable<TransformerXLAttentionImpl> {
 public:
  /// A module with the given options.
  explicit TransformerXLAttentionImpl(TransformerXLAttentionOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the attention of x; without segments their term is left out.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& table,
                        const AttentionMask& mask = {}, const torch::Tensor& segments = {});
  /// forward() and the weights, (B, H, L, L).
  std::tuple<torch::Tensor, torch::Tensor> forward_with_weights(const torch::Tensor& x,
                                                                const torch::Tensor& table,
                                                                const AttentionMask& mask = {},
                                                                const torch::Tensor& segments = {});

  /// The factor of the scores.
  double scale() const;

  TransformerXLAttentionOptions options;  ///< the options given to the constructor
  torch::Tensor in_proj_weight;           ///< (3 E, E): queries, keys, values
  torch::Tensor in_proj_bias;             ///< (3 E), undefined without bias
  torch::nn::Linear out_proj{nullptr},    ///< (E, E)
      position_proj{nullptr};             ///< (E, E), of the table, without a bias
  torch::Tensor content_bias;             ///< (H, E / H), of queries beside keys: `u`
  torch::Tensor position_bias;            ///< (H, E / H), of queries beside distances: `v`
  torch::Tensor segment_bias;             ///< (H, E / H), undefined without segments
  torch::Tensor segment_embed;            ///< (2, H, E / H), undefined without segments
  torch::nn::Dropout dropout{nullptr};    ///< of the weights

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())},
                                  {3, torch::nn::AnyValue(torch::Tensor())})

 private:
  relative::Term term_of(const torch::Tensor& q, const torch::Tensor& table,
                         const torch::Tensor& segments);
  torch::Tensor run(const torch::Tensor& x, const torch::Tensor& table, const AttentionMask& mask,
                    const torch::Tensor& segments, torch::Tensor* weights);
};

TORCH_MODULE(TransformerXLAttention);

}  // namespace posenc
