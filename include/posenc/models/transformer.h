#pragma once

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/weight_notes.h"
#include "posenc/models/output_projection.h"
#include "posenc/models/tying.h"
#include "posenc/nn/token_and_position_embedding.h"
#include "posenc/nn/transformer/transformer_decoder.h"
#include "posenc/nn/transformer/transformer_encoder.h"

namespace posenc {

struct TransformerOptions {
  TransformerOptions(int64_t src_vocab, int64_t tgt_vocab)
      : src_vocab_(src_vocab), tgt_vocab_(tgt_vocab) {}

  TORCH_ARG(int64_t, src_vocab);
  TORCH_ARG(int64_t, tgt_vocab);
  TORCH_ARG(int64_t, d_model) = 512;
  /// Of both stacks' attentions; divides d_model.
  TORCH_ARG(int64_t, num_heads) = 8;
  TORCH_ARG(int64_t, num_encoder_layers) = 6;
  TORCH_ARG(int64_t, num_decoder_layers) = 6;
  /// Width between the two linear maps of a layer.
  TORCH_ARG(int64_t, d_ff) = 2048;
  /// The decoder's own num_heads and d_ff, where they are other ones.
  TORCH_ARG(std::optional<int64_t>, decoder_num_heads) = std::nullopt;
  TORCH_ARG(std::optional<int64_t>, decoder_d_ff) = std::nullopt;
  /// Of source and target, in tokens.
  TORCH_ARG(int64_t, max_len) = 5000;
  TORCH_ARG(double, dropout) = 0.1;
  TORCH_ARG(Tying, tie) = Tying::None;
  /// Of the token vectors, before positions are added.
  TORCH_ARG(Scale, scale) = Scale::SqrtDim;
  /// The positions' sinusoid; unless set, the paper's. Its dim must be d_model.
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
  TORCH_ARG(Activation, activation) = Activation::ReLU;
  TORCH_ARG(bool, norm_first) = false;
  /// A final norm after each stack; unless set, there is one with norm_first.
  TORCH_ARG(std::optional<bool>, final_norm) = std::nullopt;
  TORCH_ARG(double, layer_norm_eps) = 1e-5;
  /// Of the layers' linear maps and norms; final_layer always has one.
  TORCH_ARG(bool, bias) = true;
  /// From one seed, Python's dropout masks; see functional::MultiheadAttentionFuncOptions.
  TORCH_ARG(bool, python_dropout_order) = false;
};

/// Token ids to logits: final_layer(decoder(tgt_embedding(tgt), encoder(src_embedding(src)))).
///
/// src: (B, S), tgt: (B, L), integers  ->  (B, L, tgt_vocab). Masks: none unless given; a
/// decoder that predicts the next token needs AttentionMask::causal() as tgt_mask.
/// Keys: `src_embedding.token_embedding.weight`, `src_embedding.position_encoding.pe`, the same of
/// `tgt_embedding`, `encoder.layers.0.self_attn.in_proj_weight`, ..., `decoder.*`,
/// `final_layer.weight`, `final_layer.bias`. Tied matrices are one parameter under the first of
/// their names; the others are aliases in files. Embeddings N(0, 1), layers Xavier uniform.
/// Errors: those of the parts; c10::ValueError for unequal vocabularies that are tied.
/// Source: notebook 03 `Transformer`.
class TransformerImpl : public Cloneable<TransformerImpl>, public WeightNotes {
 public:
  TransformerImpl(int64_t src_vocab, int64_t tgt_vocab)
      : TransformerImpl(TransformerOptions(src_vocab, tgt_vocab)) {}
  explicit TransformerImpl(TransformerOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override;
  std::vector<TiedName> tied_names() const override;

  /// `src_mask` serves the encoder's self-attention and, unless there is a `memory_mask`, the
  /// decoder's attention to the memory, whose queries are the target's: generate() does the same.
  torch::Tensor forward(const torch::Tensor& src, const torch::Tensor& tgt,
                        const AttentionMask& src_mask = {}, const AttentionMask& tgt_mask = {},
                        const std::optional<AttentionMask>& memory_mask = std::nullopt);

  /// The memory (B, S, D).
  torch::Tensor encode(const torch::Tensor& src, const AttentionMask& src_mask = {});
  /// Logits (B, L, tgt_vocab).
  torch::Tensor decode(const torch::Tensor& tgt, const torch::Tensor& memory,
                       const AttentionMask& tgt_mask = {}, const AttentionMask& memory_mask = {});

  /// A cache for `capacity` target tokens over `memory`; generate() is its user.
  DecoderCache start(const torch::Tensor& memory, int64_t capacity,
                     const AttentionMask& memory_mask = {});
  /// The logits (B, tgt_vocab) that follow the last of the tokens tgt (B, t), which follow those in
  /// the cache. decode() with a causal mask, a few tokens at a time.
  torch::Tensor step(const torch::Tensor& tgt, DecoderCache& cache);

  TransformerOptions options;
  TokenAndPositionEmbedding src_embedding{nullptr}, tgt_embedding{nullptr};
  TransformerEncoder encoder{nullptr};
  TransformerDecoder decoder{nullptr};
  OutputProjection final_layer{nullptr};

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())},
                                  {3, torch::nn::AnyValue(AttentionMask())},
                                  {4, torch::nn::AnyValue(std::optional<AttentionMask>())})

 private:
  void tie();
};

TORCH_MODULE(Transformer);

}  // namespace posenc
