#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/transformer/layers/transformer_decoder_layer.h"

namespace posenc POSENC_EXPORT {

/// Options of TransformerDecoder.
struct TransformerDecoderOptions : TransformerStackOptions<TransformerDecoderOptions> {
  using TransformerStackOptions::TransformerStackOptions;

  POSENC_FIELDS(TransformerDecoderOptions, layer_, num_layers_, norm_, final_norm_eps_,
                final_norm_bias_, relative_, alibi_);
};

/// The state that a decoder keeps between tokens. Copies are independent. It is unchanged after a
/// call that throws, whether of a function of the cache or of the decoder's step().
struct DecoderCache {
  std::vector<DecoderLayerCache> layers;  ///< one cache per layer
  AttentionMask memory_mask;              ///< resolved, for `capacity` queries

  /// Number of tokens in the cache.
  int64_t length() const { return layers.empty() ? 0 : layers.front().self.length(); }
  /// Number of tokens that fit into the cache.
  int64_t capacity() const { return layers.empty() ? 0 : layers.front().self.capacity(); }
  /// Replaces each batch row b by row `rows`[b]. With fewer rows than before, the memories of the
  /// others are dropped as well; with as many, a row may only be replaced by one that has the same
  /// memory, such as another beam of its source.
  void select(const torch::Tensor& rows);
  /// Removes all tokens except the first `length` from each layer.
  void truncate(int64_t length);
};

/// A stack of decoder layers with an optional final norm.
///
/// x: (B, L, D), memory: (B, S, D)  ->  (B, L, D); with batch_first(false) the lengths come first.
///
/// Each layer draws its own initial weights, whereas torch.nn.TransformerDecoder copies those of
/// one layer. Masks are resolved once for all layers.
///
/// ```cpp
/// posenc::TransformerDecoderLayerOptions layer(/*d_model=*/32, /*num_heads=*/4);
/// posenc::TransformerDecoder decoder(posenc::TransformerDecoderOptions(layer, /*num_layers=*/2));
/// torch::Tensor memory = torch::randn({2, 7, 32}), x = torch::randn({2, 5, 32});
/// torch::Tensor y = decoder->forward(x, memory, posenc::AttentionMask::causal());  // (2, 5, 32)
/// ```
///
/// Keys: `layers.0.*`, `layers.1.*`, ... (TransformerDecoderLayer), `norm.*`; with `relative`
/// `relative_attention_bias.weight` (rows, num_heads).
///
/// Errors: those of functional::multihead_attention().
///
/// Source: torch.nn.TransformerDecoder.
class TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  /// A module with the given options.
  explicit TransformerDecoderImpl(TransformerDecoderOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the output of the last layer for target embeddings `x` and the encoder's `memory`.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& memory,
                        const AttentionMask& mask = {}, const AttentionMask& memory_mask = {});

  /// Makes a cache for `capacity` tokens that attend to `memory` (B, S, D). The mask is that of
  /// forward() for `capacity` queries.
  DecoderCache start(const torch::Tensor& memory, int64_t capacity,
                     const AttentionMask& memory_mask = {});
  /// A causal forward() for the tokens x after those in the cache. Always (B, t, D)  ->  (B, t, D).
  /// `memory_weights`, if given, receives the weights (B, t, S) of the last layer's attention to
  /// the memory, averaged over the heads, and `cross_attentions` those of each layer, (B, H, t, S).
  torch::Tensor step(torch::Tensor x, DecoderCache& cache, torch::Tensor* memory_weights = nullptr,
                     std::vector<torch::Tensor>* cross_attentions = nullptr);

  TransformerDecoderOptions options;                      ///< the options given to the constructor
  torch::nn::ModuleList layers{nullptr};                  ///< num_layers of TransformerDecoderLayer
  TransformerNorm norm{nullptr};                          ///< with .norm(true)
  RelativePositionBias relative_attention_bias{nullptr};  ///< of all layers, with .relative()

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())},
                                  {3, torch::nn::AnyValue(AttentionMask())})

 private:
  TransformerDecoderLayerImpl& layer(size_t i) const;
};

TORCH_MODULE(TransformerDecoder);

}  // namespace posenc
