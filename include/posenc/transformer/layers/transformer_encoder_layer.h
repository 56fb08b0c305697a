#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <tuple>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/nn/grid_position_bias.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/attention/convolutional_attention.h"
#include "posenc/transformer/attention/disentangled_attention.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/attention/transformer_xl_attention.h"
#include "posenc/transformer/layers/encoder_layer_base.h"
#include "posenc/transformer/layers/layer_scale.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// Options of TransformerEncoderLayer.
using TransformerEncoderLayerOptions = TransformerLayerOptions;

/// An encoder layer: self-attention A and feed-forward network F, each with a residual connection:
/// x = norm1(x + A(x)); norm2(x + F(x)). With norm_first: x = x + A(norm1(x)); x + F(norm2(x)).
/// With post_norms A and F are followed by post_norm1 and post_norm2; with layer_scale they are
/// then multiplied by layer_scale1 and layer_scale2, and by residual_scale, before they are added.
/// With adapter a third block follows, before the last norm2. With per_layer_input another follows,
/// x = x + post_norm3(per_layer_projection(activation(per_layer_gate(x)) * e)), where e is the
/// stack's input for the layer; with output_factor x is then multiplied by it. With
/// Mixing::Fourier, A is the real part of the Fourier transform over the sequence and its channels,
/// which mixes padding in: a mask of keys changes nothing.
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
/// Keys: `self_attn.*` (MultiheadAttention, or DisentangledAttention with disentangled, or
/// TransformerXLAttention with transformer_xl), or `conv_attn.*` (ConvolutionalAttention) with
/// Mixing::Convolution, or neither with Mixing::Fourier; `linear1.*` (d_ff,
/// D), or (2 d_ff, D) with FeedForward::Gated, `linear2.*`, `norm1.*`, `norm2.*`; with post_norms
/// `post_norm1.*` and `post_norm2.*`; with layer_scale `layer_scale1.lambda1` and
/// `layer_scale2.lambda1` (D); with grid_bias `grid_position_bias.weight` (GridPositionBias); with
/// adapter `adapter1.*` (width, D), `adapter2.*` and, if it has its own, `adapter_norm.*`; with
/// per_layer_input `per_layer_gate.weight` (P, D), `per_layer_projection.weight` (D, P) and
/// `post_norm3.*`; with output_factor `output_factor` (1), a buffer.
///
/// Errors: those of functional::multihead_attention(); at construction, c10::ValueError for options
/// that exclude each other; with Mixing::Fourier, c10::ValueError for attention weights and for
/// masks of more than keys.
///
/// Source: torch.nn.TransformerEncoderLayer; in transformers 5.23 `Dinov2Layer` (layer_scale),
/// `FNetLayer` (Mixing::Fourier), `ConvBertLayer` (Mixing::Convolution),
/// `LlamaDecoderLayer` (rotary, Gated, NormKind::RMS), `ModernBertEncoderLayer` (window),
/// `Qwen3Attention` (head_dim, qk_norm), `Gemma3DecoderLayer` (post_norms), `BeitLayer`
/// (grid_bias), `T5Block` (attention_scale, relative), `DebertaV2Layer` (disentangled),
/// `XLNetLayer` (transformer_xl), `XmodLayer` (adapter), `EsmcLayer` (residual_scale,
/// qk_norm_whole) and `EmbeddingGemma2EncoderLayer` (per_layer_input, output_factor, value_norm).
class TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl>,
                                    public EncoderLayerBase {
 public:
  /// A module with the default options.
  TransformerEncoderLayerImpl(int64_t d_model, int64_t num_heads)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, num_heads)) {}
  /// A module with the given options.
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_);

  void reset() override;
  void reset_parameters() override;
  void pretty_print(std::ostream& stream) const override;
  const TransformerLayerOptions& layer_options() const override { return options; }

  /// Returns the layer's output. `mask` is combined with the layer's window and with the grid bias
  /// of the grid of its table. A rotary embedding
  /// rotates by positions 0, 1, ... or by `position_ids`, (L) or (B, L).
  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {},
                        const torch::Tensor& position_ids = {});

  /// The same with the rows of relative positions and the segments of a stack, of a layer with
  /// disentangled or transformer_xl. Other layers do not read them.
  torch::Tensor forward_relative(const torch::Tensor& x, const StackPositions& relative,
                                 const AttentionMask& mask = {});

  /// Returns the layer's output and its attention weights (B, H, L, L), as
  /// MultiheadAttention::forward_with_weights() does.
  std::tuple<torch::Tensor, torch::Tensor> forward_with_weights(
      const torch::Tensor& x, const AttentionMask& mask = {},
      const torch::Tensor& position_ids = {});

  TransformerEncoderLayerOptions options;            ///< the options given to the constructor
  MultiheadAttention self_attn{nullptr};             ///< the self-attention, with Mixing::Attention
  DisentangledAttention disentangled_attn{nullptr};  ///< in its place, with its keys
  TransformerXLAttention transformer_xl_attn{nullptr};  ///< the same
  ConvolutionalAttention conv_attn{nullptr};            ///< the same beside a convolution
  torch::nn::Linear linear1{nullptr},  ///< (D) to (d_ff), or to (2 d_ff) with gates
      linear2{nullptr};                ///< (d_ff) to (D)
  TransformerNorm norm1{nullptr},      ///< of the self-attention; null with first_norm(false)
      norm2{nullptr},       ///< of the network; null with second_norm(false), Parallel::SharedNorm
      post_norm1{nullptr},  ///< after the self-attention, with .post_norms(true)
      post_norm2{nullptr};  ///< after the feed-forward network, the same
  LayerScale layer_scale1{nullptr},  ///< of the self-attention, with .layer_scale()
      layer_scale2{nullptr};         ///< of the feed-forward network, with .layer_scale()
  GridPositionBias grid_position_bias{nullptr};  ///< with .grid_bias()
  torch::nn::Linear adapter1{nullptr},           ///< (D) to (width), with .adapter()
      adapter2{nullptr};                         ///< (width) to (D)
  TransformerNorm adapter_norm{nullptr};         ///< with AdapterNorm::Own
  torch::nn::Linear per_layer_gate{nullptr},     ///< (D) to (P), with .per_layer_input()
      per_layer_projection{nullptr};             ///< (P) to (D)
  TransformerNorm post_norm3{nullptr};           ///< after that block
  torch::Tensor output_factor;                   ///< (1), with .output_factor(true)
  torch::nn::Dropout dropout{nullptr},           ///< after the activation
      dropout1{nullptr},                         ///< after the self-attention
      dropout2{nullptr};                         ///< after the feed-forward network

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(AttentionMask())},
                                  {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  friend class TransformerEncoderImpl;

  torch::Tensor run(const torch::Tensor& x, const StackPositions& relative,
                    const AttentionMask& mask, const torch::Tensor& position_ids,
                    torch::Tensor* weights) override;
  torch::Tensor step(const torch::Tensor& x, KeyValueCache& cache, const AttentionMask& mask,
                     const torch::Tensor& position_ids);
  AttentionMask with_own_parts(const AttentionMask& mask) const;
};

TORCH_MODULE(TransformerEncoderLayer);

}  // namespace posenc
