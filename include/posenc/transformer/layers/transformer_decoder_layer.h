#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <functional>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/attention/key_value_cache.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/layers/layer_scale.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// Options of TransformerDecoderLayer.
using TransformerDecoderLayerOptions = TransformerLayerOptions;

/// The state that one decoder layer keeps between tokens.
struct DecoderLayerCache {
  KeyValueCache self;        ///< keys and values of the self-attention
  functional::Heads memory;  ///< keys and values of the memory; no query
};

/// A decoder layer: self-attention A, attention C to the encoder's memory and feed-forward network
/// F, each with a residual connection: x = norm1(x + A(x)); x = norm2(x + C(x, memory));
/// norm3(x + F(x)). With norm_first each norm is applied to the input of its block instead. With
/// layer_scale, A, C and F are multiplied by layer_scale1 to layer_scale3 before they are added.
///
/// x: (B, L, D), memory: (B, S, D)  ->  (B, L, D); with batch_first(false) the lengths come first.
///
/// The same seed gives the same initial weights as in PyTorch.
///
/// ```cpp
/// posenc::TransformerDecoderLayer layer(/*d_model=*/32, /*num_heads=*/4);
/// torch::Tensor memory = torch::randn({2, 7, 32}), x = torch::randn({2, 5, 32});
/// torch::Tensor y = layer->forward(x, memory, posenc::AttentionMask::causal());  // (2, 5, 32)
/// ```
///
/// Keys: `self_attn.*`, `multihead_attn.*` (MultiheadAttention), `linear1.*`, which is (2 d_ff, D)
/// with FeedForward::Gated, `linear2.*`,
/// `norm1.*`, `norm2.*`, `norm3.*`; with layer_scale `layer_scale1.lambda1` to
/// `layer_scale3.lambda1` (D).
///
/// Errors: those of functional::multihead_attention().
///
/// Source: torch.nn.TransformerDecoderLayer; in transformers 5.23 `T5Block` (head_dim,
/// attention_scale, NormKind::RMS, Gated, without biases).
class TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  /// A module with the default options.
  TransformerDecoderLayerImpl(int64_t d_model, int64_t num_heads)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, num_heads)) {}
  /// A module with the given options.
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the layer's output for `x` and the encoder's `memory`.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& memory,
                        const AttentionMask& mask = {}, const AttentionMask& memory_mask = {});

  /// Makes a cache for `capacity` tokens, with the keys and values of `memory` (B, S, D).
  DecoderLayerCache start(const torch::Tensor& memory, int64_t capacity);
  /// A causal forward() for the tokens x after those in the cache. Always (B, t, D)  ->  (B, t, D).
  /// `mask` is over these as queries and all tokens so far as keys, and is combined with it.
  /// `memory_weights`, if given, receives the weights (B, H, t, S) of the attention to the memory.
  torch::Tensor step(const torch::Tensor& x, DecoderLayerCache& cache,
                     const AttentionMask& memory_mask = {}, const AttentionMask& mask = {},
                     torch::Tensor* memory_weights = nullptr);

  TransformerDecoderLayerOptions options;  ///< the options given to the constructor
  MultiheadAttention self_attn{nullptr},   ///< the self-attention
      multihead_attn{nullptr};             ///< the attention to the memory
  torch::nn::Linear linear1{nullptr},      ///< (D) to (d_ff)
      linear2{nullptr};                    ///< (d_ff) to (D)
  TransformerNorm norm1{nullptr},          ///< of the self-attention
      norm2{nullptr},                      ///< of the attention to the memory
      norm3{nullptr};                      ///< of the feed-forward network
  LayerScale layer_scale1{nullptr},        ///< of the self-attention, with .layer_scale()
      layer_scale2{nullptr},               ///< of the attention to the memory
      layer_scale3{nullptr};               ///< of the feed-forward network
  torch::nn::Dropout dropout{nullptr},     ///< after the activation
      dropout1{nullptr},                   ///< after the self-attention
      dropout2{nullptr},                   ///< after the attention to the memory
      dropout3{nullptr};                   ///< after the feed-forward network

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())},
                                  {3, torch::nn::AnyValue(AttentionMask())})

 private:
  using Block = std::function<torch::Tensor(const torch::Tensor&)>;
  torch::Tensor blocks(torch::Tensor x, const Block& self, const Block& cross);
};

TORCH_MODULE(TransformerDecoderLayer);

}  // namespace posenc
