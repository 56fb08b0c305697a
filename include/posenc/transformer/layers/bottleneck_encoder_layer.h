#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/layers/encoder_layer_base.h"

namespace posenc POSENC_EXPORT {

/// A feed-forward network of a BottleneckEncoderLayer: norm(x + linear2(activation(linear1(x)))).
///
/// x: (B, L, T)  ->  (B, L, T), T being intra_bottleneck_size.
///
/// Keys: `linear1.*` (d_ff, T), `linear2.*` (T, d_ff), `norm.*` (TransformerNorm).
///
/// Source: `FFNLayer` in transformers 5.23.
class BottleneckFeedForwardImpl : public Cloneable<BottleneckFeedForwardImpl> {
 public:
  /// A module with the given options, whose bottleneck has to be set. `layer_norm_eps` of the
  /// options is that of the norm.
  explicit BottleneckFeedForwardImpl(TransformerLayerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the network's output.
  torch::Tensor forward(const torch::Tensor& x);

  TransformerLayerOptions options;      ///< the options given to the constructor
  torch::nn::Linear linear1{nullptr},   ///< (T) to (d_ff)
      linear2{nullptr};                 ///< (d_ff) to (T)
  TransformerNorm norm{nullptr};        ///< of the sum
  torch::nn::Dropout dropout{nullptr},  ///< after the activation
      dropout2{nullptr};                ///< of what is added
};

TORCH_MODULE(BottleneckFeedForward);

/// An encoder layer whose attention A and feed-forward networks F work at the width T of a
/// bottleneck: b = input_norm(input(x)); y = norm1(b + A); y = F(y) for each network;
/// output_norm(x + output(y)). Without use_bottleneck, b is x, and the result is y.
///
/// Queries and keys of A are projected from b with use_bottleneck_attention, otherwise from
/// shared_norm(shared(x)) with key_query_shared_bottleneck, otherwise from x; values from b with
/// use_bottleneck_attention, otherwise from x.
///
/// x: (B, L, D)  ->  (B, L, D); (L, B, D) with batch_first(false).
///
/// ```cpp
/// using Options = posenc::TransformerLayerOptions;
/// const posenc::BottleneckOptions bottleneck(/*intra_bottleneck_size=*/16);
/// posenc::BottleneckEncoderLayer layer(Options(32, 4).d_ff(64).bottleneck(bottleneck));
/// torch::Tensor x = layer->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: with use_bottleneck `input.*` (T, D), `input_norm.*`, `output.*` (D, T), `output_norm.*`,
/// and, with key_query_shared_bottleneck, `shared.*` (T, D), `shared_norm.*`; `self_attn.*`
/// (MultiheadAttention), `norm1.*`; the networks `ffn.0.*`, `ffn.1.*`, ..., all but the last, and
/// `last_ffn.*` (BottleneckFeedForward).
///
/// Errors: those of functional::multihead_attention(); at construction, c10::ValueError for options
/// that exclude each other.
///
/// Source: `MobileBertLayer` in transformers 5.23.
class BottleneckEncoderLayerImpl : public Cloneable<BottleneckEncoderLayerImpl>,
                                   public EncoderLayerBase {
 public:
  /// A module with the given options, whose bottleneck has to be set.
  explicit BottleneckEncoderLayerImpl(TransformerLayerOptions options_);

  void reset() override;
  void reset_parameters() override;
  void pretty_print(std::ostream& stream) const override;
  const TransformerLayerOptions& layer_options() const override { return options; }

  /// Returns the layer's output.
  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {});

  TransformerLayerOptions options;          ///< the options given to the constructor
  torch::nn::Linear input{nullptr},         ///< (D) to (T), with use_bottleneck
      shared{nullptr};                      ///< the same, with key_query_shared_bottleneck
  TransformerNorm input_norm{nullptr},      ///< of input's result
      shared_norm{nullptr};                 ///< of shared's result
  MultiheadAttention self_attn{nullptr};    ///< the self-attention, of width T
  TransformerNorm norm1{nullptr};           ///< of the self-attention
  torch::nn::ModuleList ffn{nullptr};       ///< BottleneckFeedForward, all but the last
  BottleneckFeedForward last_ffn{nullptr};  ///< the last
  torch::nn::Linear output{nullptr};        ///< (T) to (D), with use_bottleneck
  TransformerNorm output_norm{nullptr};     ///< of the layer's result, with use_bottleneck
  torch::nn::Dropout dropout1{nullptr},     ///< after the self-attention
      dropout2{nullptr};                    ///< after output, with use_bottleneck

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(AttentionMask())})

 private:
  torch::Tensor run(const torch::Tensor& x, const StackPositions& relative,
                    const AttentionMask& mask, const torch::Tensor& position_ids,
                    torch::Tensor* weights) override;
};

TORCH_MODULE(BottleneckEncoderLayer);

}  // namespace posenc
