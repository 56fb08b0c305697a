#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/attention/transformer_xl_attention.h"
#include "posenc/transformer/layers/encoder_layer_base.h"

namespace posenc POSENC_EXPORT {

/// An encoder layer with the attention of Transformer-XL: x = norm1(x + attention), x = norm2(x +
/// linear2(activation(linear1(x)))).
///
/// x: (B, L, D), table: (G, 2 L - 1, D), segments: (B, L) or undefined  ->  (B, L, D).
///
/// ```cpp
/// using Options = posenc::TransformerLayerOptions;
/// const posenc::TransformerXLOptions positions(posenc::SinusoidOptions(/*dim=*/32));
/// posenc::TransformerXLEncoderLayer layer(Options(32, 4).d_ff(64).transformer_xl(positions));
/// torch::Tensor table = posenc::sinusoid_rows(positions.sinusoid(), torch::arange(4, -5, -1));
/// torch::Tensor x = layer->forward(torch::randn({2, 5, 32}), table.unsqueeze(0));  // (2, 5, 32)
/// ```
///
/// Keys: `self_attn.*` (TransformerXLAttention), `linear1.*`, `linear2.*`, `norm1.*`, `norm2.*`.
///
/// Errors: those of TransformerXLAttention; at construction, c10::ValueError for options that
/// exclude each other.
///
/// Source: `XLNetLayer` in transformers 5.23.
class TransformerXLEncoderLayerImpl : public Cloneable<TransformerXLEncoderLayerImpl>,
                                      public EncoderLayerBase {
 public:
  /// A module with the given options, whose Transformer-XL attention has to be set.
  explicit TransformerXLEncoderLayerImpl(TransformerLayerOptions options_);

  void reset() override;
  void reset_parameters() override;
  void pretty_print(std::ostream& stream) const override;
  const TransformerLayerOptions& layer_options() const override { return options; }

  /// Returns the layer's output. `table` is that of TransformerXLPositions.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& table,
                        const AttentionMask& mask = {}, const torch::Tensor& segments = {});

  TransformerLayerOptions options;            ///< the options given to the constructor
  TransformerXLAttention self_attn{nullptr};  ///< the self-attention
  torch::nn::Linear linear1{nullptr},         ///< (D) to (d_ff)
      linear2{nullptr};                       ///< (d_ff) to (D)
  TransformerNorm norm1{nullptr},             ///< of the self-attention
      norm2{nullptr};                         ///< of the feed-forward network
  torch::nn::Dropout dropout{nullptr},        ///< after the activation
      dropout1{nullptr},                      ///< after the self-attention
      dropout2{nullptr};                      ///< after the feed-forward network

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())},
                                  {3, torch::nn::AnyValue(torch::Tensor())})

 private:
  torch::Tensor run(const torch::Tensor& x, const AttentionMask& mask,
                    const torch::Tensor& position_ids, torch::Tensor* weights) override;
  torch::Tensor run_relative(const torch::Tensor& x, const StackPositions& relative,
                             const AttentionMask& mask, const torch::Tensor& position_ids,
                             torch::Tensor* weights) override;
};

TORCH_MODULE(TransformerXLEncoderLayer);

}  // namespace posenc
