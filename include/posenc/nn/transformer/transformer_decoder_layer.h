#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <functional>

#include "posenc/core/cloneable.h"
#include "posenc/nn/attention/key_value_cache.h"
#include "posenc/nn/attention/multihead_attention.h"
#include "posenc/nn/transformer/layer_norm.h"
#include "posenc/nn/transformer/transformer_layer_options.h"

namespace posenc {

using TransformerDecoderLayerOptions = TransformerLayerOptions;

/// What one decoder layer keeps between tokens: its own keys and values, and the memory's.
struct DecoderLayerCache {
  KeyValueCache self;
  functional::Heads memory;  ///< no query
};

/// Self-attention A, attention to the encoder's memory C, the two linear maps F, each around a
/// residual: x = norm1(x + A(x)); x = norm2(x + C(x, memory)); norm3(x + F(x)); with norm_first
/// each norm stands before its block instead.
///
/// x: (B, L, D), memory: (B, S, D)  ->  (B, L, D); lengths first with batch_first(false).
/// Keys: `self_attn.*`, `multihead_attn.*` (MultiheadAttention), `linear1.*`, `linear2.*`,
/// `norm1.*`, `norm2.*`, `norm3.*`. The same seed gives PyTorch's weights. Errors:
/// functional::multihead_attention(). Source: torch.nn.TransformerDecoderLayer.
class TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  TransformerDecoderLayerImpl(int64_t d_model, int64_t num_heads)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, num_heads)) {}
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& memory,
                        const AttentionMask& mask = {}, const AttentionMask& memory_mask = {});

  /// A cache for `capacity` tokens over `memory` (B, S, D), whose keys and values it computes.
  DecoderLayerCache start(const torch::Tensor& memory, int64_t capacity);
  /// forward() for the tokens x (B, t, D) behind those in the cache, each of which sees all before
  /// it. Always (B, t, D).
  torch::Tensor step(const torch::Tensor& x, DecoderLayerCache& cache,
                     const AttentionMask& memory_mask = {});

  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  torch::nn::Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
  torch::nn::Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr}, dropout3{nullptr};

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())},
                                  {3, torch::nn::AnyValue(AttentionMask())})

 private:
  using Block = std::function<torch::Tensor(const torch::Tensor&)>;
  torch::Tensor blocks(torch::Tensor x, const Block& self, const Block& cross);
};

TORCH_MODULE(TransformerDecoderLayer);

}  // namespace posenc
