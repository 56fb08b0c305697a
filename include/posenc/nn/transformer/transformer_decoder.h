#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/nn/transformer/transformer_decoder_layer.h"

namespace posenc {

struct TransformerDecoderOptions {
  TransformerDecoderOptions(TransformerDecoderLayerOptions layer, int64_t num_layers)
      : layer_(layer), num_layers_(num_layers) {}

  TORCH_ARG(TransformerDecoderLayerOptions, layer);
  TORCH_ARG(int64_t, num_layers);
  /// A last norm, behind all layers; pre-norm stacks need it.
  TORCH_ARG(bool, norm) = false;
};

/// What a decoder keeps between tokens. A copy goes on apart; a call that throws, of the decoder's
/// step() or of its own, leaves it as it was.
struct DecoderCache {
  std::vector<DecoderLayerCache> layers;
  AttentionMask memory_mask;  ///< resolved, for as many queries as the cache has room for

  /// Tokens seen.
  int64_t length() const { return layers.empty() ? 0 : layers.front().self.length(); }
  /// Tokens it has room for.
  int64_t capacity() const { return layers.empty() ? 0 : layers.front().self.capacity(); }
  /// Batch row b becomes what row `rows`[b] was. With fewer rows than now the others leave, with
  /// their memories; with as many, both rows must have the same memory: beams of one source.
  void select(const torch::Tensor& rows);
  /// Forgets all tokens but the first `length`, in each layer.
  void truncate(int64_t length);
};

/// num_layers decoder layers, one behind the other, and perhaps a last norm.
///
/// x: (B, L, D), memory: (B, S, D)  ->  (B, L, D); lengths first with batch_first(false).
/// Keys: `layers.0.*`, `layers.1.*`, ... (TransformerDecoderLayer), `norm.*`. Each layer draws its
/// own weights; torch.nn.TransformerDecoder copies those of one layer. Masks are resolved once.
/// Errors: functional::multihead_attention(). Source: torch.nn.TransformerDecoder.
class TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  explicit TransformerDecoderImpl(TransformerDecoderOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& memory,
                        const AttentionMask& mask = {}, const AttentionMask& memory_mask = {});

  /// A cache for `capacity` tokens over `memory` (B, S, D). The mask is that of forward() for
  /// `capacity` queries.
  DecoderCache start(const torch::Tensor& memory, int64_t capacity,
                     const AttentionMask& memory_mask = {});
  /// forward(), causal, for the tokens x (B, t, D) behind those in the cache. Always (B, t, D).
  torch::Tensor step(torch::Tensor x, DecoderCache& cache);

  TransformerDecoderOptions options;
  torch::nn::ModuleList layers{nullptr};
  LayerNorm norm{nullptr};  ///< with .norm(true)

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())},
                                  {3, torch::nn::AnyValue(AttentionMask())})

 private:
  TransformerDecoderLayerImpl& layer(size_t i) const;
};

TORCH_MODULE(TransformerDecoder);

}  // namespace posenc
