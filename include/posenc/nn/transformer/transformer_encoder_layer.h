#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <tuple>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/nn/attention/multihead_attention.h"
#include "posenc/nn/transformer/layer_norm.h"
#include "posenc/nn/transformer/layer_scale.h"
#include "posenc/nn/transformer/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// Options of TransformerEncoderLayer.
using TransformerEncoderLayerOptions = TransformerLayerOptions;

/// An encoder layer: self-attention A and feed-forward network F, each with a residual connection:
/// x = norm1(x + A(x)); norm2(x + F(x)). With norm_first: x = x + A(norm1(x)); x + F(norm2(x)).
/// With layer_scale, A and F are multiplied by layer_scale1 and layer_scale2 before they are added.
///
/// x: (B, L, D)  ->  (B, L, D); (L, B, D) with batch_first(false).
///
/// The same seed gives the same initial weights as in PyTorch.
///
/// ```cpp
/// using Options = posenc::TransformerEncoderLayerOptions;
/// posenc::TransformerEncoderLayer layer(Options(32, 4).d_ff(64).norm_first(true));
/// torch::Tensor x = layer->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: `self_attn.*` (MultiheadAttention), `linear1.*` (d_ff, D), `linear2.*`, `norm1.*`,
/// `norm2.*`; with layer_scale `layer_scale1.lambda1` and `layer_scale2.lambda1` (D).
///
/// Errors: those of functional::multihead_attention().
///
/// Source: torch.nn.TransformerEncoderLayer; layer_scale: `Dinov2Layer` in transformers 5.23.
class TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  /// A module with the default options.
  TransformerEncoderLayerImpl(int64_t d_model, int64_t num_heads)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, num_heads)) {}
  /// A module with the given options.
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the layer's output.
  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {});

  /// Returns the layer's output and its attention weights (B, H, L, L), as
  /// MultiheadAttention::forward_with_weights() does.
  std::tuple<torch::Tensor, torch::Tensor> forward_with_weights(const torch::Tensor& x,
                                                                const AttentionMask& mask = {});

  TransformerEncoderLayerOptions options;  ///< the options given to the constructor
  MultiheadAttention self_attn{nullptr};   ///< the self-attention
  torch::nn::Linear linear1{nullptr},      ///< (D) to (d_ff)
      linear2{nullptr};                    ///< (d_ff) to (D)
  LayerNorm norm1{nullptr},                ///< of the self-attention
      norm2{nullptr};                      ///< of the feed-forward network
  LayerScale layer_scale1{nullptr},        ///< of the self-attention, with .layer_scale()
      layer_scale2{nullptr};               ///< of the feed-forward network, with .layer_scale()
  torch::nn::Dropout dropout{nullptr},     ///< after the activation
      dropout1{nullptr},                   ///< after the self-attention
      dropout2{nullptr};                   ///< after the feed-forward network

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(AttentionMask())})

 private:
  torch::Tensor run(const torch::Tensor& x, const AttentionMask& mask, torch::Tensor* weights);
};

TORCH_MODULE(TransformerEncoderLayer);

}  // namespace posenc
