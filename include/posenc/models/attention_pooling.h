#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/nn/layer_norm.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// Options of AttentionPooling.
struct AttentionPoolingOptions {
  /// The default options for width `d_model` and `num_heads` heads.
  AttentionPoolingOptions(int64_t d_model, int64_t num_heads)
      : d_model_(d_model), num_heads_(num_heads) {}

  /// Width D.
  TORCH_ARG(int64_t, d_model);
  /// Number of heads; must divide d_model.
  TORCH_ARG(int64_t, num_heads);
  /// Width of the feed-forward network.
  TORCH_ARG(int64_t, d_ff) = 3072;
  /// Its activation.
  TORCH_ARG(Activation, activation) = Activation::GELUTanh;
  /// Added to the variance in the norm.
  TORCH_ARG(double, layer_norm_eps) = 1e-6;

  POSENC_FIELDS(AttentionPoolingOptions, d_model_, num_heads_, d_ff_, activation_, layer_norm_eps_);
};

/// The vector of a whole sequence: a trained query attends to all rows, y = attention(probe, x, x),
/// then y + linear2(activation(linear1(layernorm(y)))).
///
/// x: (B, L, D)  ->  (B, D).
///
/// ```cpp
/// posenc::AttentionPooling pooling(posenc::AttentionPoolingOptions(8, /*num_heads=*/2).d_ff(16));
/// torch::Tensor whole = pooling->forward(torch::randn({2, 5, 8}));  // (2, 8)
/// ```
///
/// Keys: `probe` (1, 1, D), `attention.*` (MultiheadAttention), `layernorm.*`, `linear1.*`
/// (d_ff, D), `linear2.*`.
///
/// Errors: those of functional::multihead_attention().
///
/// Source: `SiglipMultiheadAttentionPoolingHead` of transformers 5.23.
class AttentionPoolingImpl : public Cloneable<AttentionPoolingImpl> {
 public:
  /// A module with the given options.
  explicit AttentionPoolingImpl(AttentionPoolingOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the vectors of the sequences.
  torch::Tensor forward(const torch::Tensor& x);

  AttentionPoolingOptions options;        ///< the options given to the constructor
  torch::Tensor probe;                    ///< (1, 1, D), the query
  MultiheadAttention attention{nullptr};  ///< from the query to the rows
  LayerNorm layernorm{nullptr};           ///< of what it gives
  torch::nn::Linear linear1{nullptr},     ///< (D) to (d_ff)
      linear2{nullptr};                   ///< (d_ff) to (D)
};

TORCH_MODULE(AttentionPooling);

}  // namespace posenc
