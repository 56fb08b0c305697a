#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/nn/rotary_embedding.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/attention/transformer_xl_attention.h"
#include "posenc/transformer/layers/conformer_convolution.h"
#include "posenc/transformer/layers/conformer_feed_forward.h"
#include "posenc/transformer/layers/encoder_layer_base.h"

namespace posenc POSENC_EXPORT {

/// A layer of a conformer: x += ffn1(x) / 2, x += self_attn(norm1(x)), x += conv(x), x += ffn2(x) /
/// 2, x = norm2(x), where ffn1 and ffn2 are networks linear2(activation(linear1(norm(x)))).
///
/// With TransformerLayerOptions::transformer_xl the attention is a TransformerXLAttention, without
/// bi_data, segments and mask_embedding; with `rotary` the input of queries and keys is rotated,
/// head by head, before it is projected.
///
/// x: (B, L, D)  ->  (B, L, D).
///
/// ```cpp
/// posenc::ConformerEncoderLayer layer(posenc::TransformerLayerOptions(32, 4).d_ff(64).conformer(
///     posenc::ConformerOptions(/*conv_kernel_size=*/3)));
/// torch::Tensor x = layer->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: `ffn1.norm.*`, `ffn1.linear1.*`, `ffn1.linear2.*`, `norm1.*`, `self_attn.*`
/// (MultiheadAttention or TransformerXLAttention), `conv.*` (ConformerConvolution), `ffn2.*` as
/// `ffn1.*`, `norm2.*`; of the rotary embedding those of RotaryEmbedding.
///
/// Errors: those of the attention; at construction, c10::ValueError for options that exclude each
/// other.
///
/// Source: `Wav2Vec2ConformerEncoderLayer` in transformers 5.23.
class ConformerEncoderLayerImpl : public Cloneable<ConformerEncoderLayerImpl>,
                                  public EncoderLayerBase {
 public:
  /// A module with the given options, whose conformer has to be set.
  explicit ConformerEncoderLayerImpl(TransformerLayerOptions options_);

  void reset() override;
  void reset_parameters() override;
  void pretty_print(std::ostream& stream) const override;
  const TransformerLayerOptions& layer_options() const override { return options; }

  /// Returns the layer's output. `table` is that of TransformerXLPositions, for a
  /// TransformerXLAttention.
  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {},
                        const torch::Tensor& table = {});

  TransformerLayerOptions options;                      ///< the options given to the constructor
  ConformerFeedForward ffn1{nullptr},                   ///< before the attention
      ffn2{nullptr};                                    ///< after the convolution
  MultiheadAttention self_attn{nullptr};                ///< without `transformer_xl`
  TransformerXLAttention transformer_xl_attn{nullptr};  ///< with it, registered by the same name
  RotaryEmbedding rotary{nullptr};                      ///< with `rotary`
  ConformerConvolution conv{nullptr};                   ///< the convolution
  TransformerNorm norm1{nullptr},                       ///< of the input of the attention
      norm2{nullptr};                                   ///< of the layer's output
  torch::nn::Dropout dropout1{nullptr};                 ///< after the attention

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(AttentionMask())},
                                  {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  torch::Tensor run(const torch::Tensor& x, const StackPositions& relative,
                    const AttentionMask& mask, const torch::Tensor& position_ids,
                    torch::Tensor* weights) override;
};

TORCH_MODULE(ConformerEncoderLayer);

}  // namespace posenc
