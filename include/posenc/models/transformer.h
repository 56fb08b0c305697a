#pragma once

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/export.h"
#include "posenc/models/output_projection.h"
#include "posenc/models/tying.h"
#include "posenc/nn/token_and_position_embedding.h"
#include "posenc/nn/transformer/transformer_decoder.h"
#include "posenc/nn/transformer/transformer_encoder.h"

namespace posenc POSENC_EXPORT {

/// Options of Transformer.
struct TransformerOptions {
  /// The default options for these vocabularies.
  TransformerOptions(int64_t src_vocab, int64_t tgt_vocab)
      : src_vocab_(src_vocab), tgt_vocab_(tgt_vocab) {}

  /// Number of tokens in the source vocabulary.
  TORCH_ARG(int64_t, src_vocab);
  /// Number of tokens in the target vocabulary.
  TORCH_ARG(int64_t, tgt_vocab);
  /// Width D of the model.
  TORCH_ARG(int64_t, d_model) = 512;
  /// Number of heads of every attention; must divide d_model.
  TORCH_ARG(int64_t, num_heads) = 8;
  /// Number of encoder layers.
  TORCH_ARG(int64_t, num_encoder_layers) = 6;
  /// Number of decoder layers.
  TORCH_ARG(int64_t, num_decoder_layers) = 6;
  /// Width of the feed-forward networks.
  TORCH_ARG(int64_t, d_ff) = 2048;
  /// num_heads of the decoder, if different.
  TORCH_ARG(std::optional<int64_t>, decoder_num_heads) = std::nullopt;
  /// d_ff of the decoder, if different.
  TORCH_ARG(std::optional<int64_t>, decoder_d_ff) = std::nullopt;
  /// Maximum length of source and target in tokens.
  TORCH_ARG(int64_t, max_len) = 5000;
  /// Probability of every dropout, in [0, 1).
  TORCH_ARG(double, dropout) = 0.1;
  /// Which vocabulary matrices share a weight.
  TORCH_ARG(Tying, tie) = Tying::None;
  /// Factor of the token vectors, before positions are added.
  TORCH_ARG(Scale, scale) = Scale::SqrtDim;
  /// How the token tables are initialised; the reference class has StandardNormal.
  TORCH_ARG(EmbeddingInit, embedding_init) = EmbeddingInit::InverseSqrtDim;
  /// The sinusoid of the positions; by default the paper's. Its dim must be d_model.
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
  /// Activation of the feed-forward networks.
  TORCH_ARG(Activation, activation) = Activation::ReLU;
  /// Normalises the input of each block (pre-norm); false: its output, as in the paper.
  TORCH_ARG(bool, norm_first) = false;
  /// Adds a final norm to each stack; by default only with norm_first.
  TORCH_ARG(std::optional<bool>, final_norm) = std::nullopt;
  /// Added to the variance in the norms.
  TORCH_ARG(double, layer_norm_eps) = 1e-5;
  /// Whether the layers' linear maps and norms have a bias; final_layer always has one.
  TORCH_ARG(bool, bias) = true;
  /// Draws Python's dropout masks; see functional::MultiheadAttentionFuncOptions.
  TORCH_ARG(bool, python_dropout_order) = false;
};

/// An encoder-decoder Transformer, from token ids to logits:
/// final_layer(decoder(tgt_embedding(tgt), encoder(src_embedding(src)))).
/// src: (B, S), tgt: (B, L), integers  ->  (B, L, tgt_vocab).
///
/// There are no masks by default; a decoder that predicts the next token needs
/// AttentionMask::causal() as tgt_mask. Tied matrices are one parameter, registered under the first
/// of their names; the other names are aliases in files. Embeddings begin as N(0, 1 / d_model), as
/// in tensor2tensor and fairseq, layers as Xavier uniform. With EmbeddingInit::StandardNormal a
/// seed gives the initial weights that it gives the reference class in Python.
///
/// ```cpp
/// posenc::Transformer model(/*src_vocab=*/100, /*tgt_vocab=*/100);
/// auto src = torch::tensor({{5, 6, 7}}), tgt = torch::tensor({{1, 7, 6}});
/// torch::Tensor logits = model->forward(src, tgt, {}, posenc::AttentionMask::causal());
/// ```
///
/// Keys: `src_embedding.token_embedding.weight`, `src_embedding.position_encoding.pe`, the same for
/// `tgt_embedding`, `encoder.layers.0.self_attn.in_proj_weight`, ..., `decoder.*`,
/// `final_layer.weight`, `final_layer.bias`.
///
/// Errors: those of the parts; c10::ValueError for tied vocabularies of different sizes. Source:
/// the reference class `Transformer` in notebooks_ref.
class TransformerImpl : public Cloneable<TransformerImpl>, public StateDictTraits {
 public:
  /// A model with the default options.
  TransformerImpl(int64_t src_vocab, int64_t tgt_vocab)
      : TransformerImpl(TransformerOptions(src_vocab, tgt_vocab)) {}
  /// A model with the given options.
  explicit TransformerImpl(TransformerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  /// Returns a deep copy, on `device` if one is given. Tied matrices stay tied.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override;
  std::vector<TiedName> tied_names() const override;

  /// Returns the logits (B, L, tgt_vocab). `src_mask` applies to the encoder's self-attention and,
  /// unless a `memory_mask` is given, to the decoder's attention to the memory, whose queries are
  /// the target tokens. generate() does the same.
  torch::Tensor forward(const torch::Tensor& src, const torch::Tensor& tgt,
                        const AttentionMask& src_mask = {}, const AttentionMask& tgt_mask = {},
                        const std::optional<AttentionMask>& memory_mask = std::nullopt);

  /// Returns the memory (B, S, D), the encoder's output.
  torch::Tensor encode(const torch::Tensor& src, const AttentionMask& src_mask = {});
  /// Returns the logits (B, L, tgt_vocab).
  torch::Tensor decode(const torch::Tensor& tgt, const torch::Tensor& memory,
                       const AttentionMask& tgt_mask = {}, const AttentionMask& memory_mask = {});

  /// Makes a cache for `capacity` target tokens that attend to `memory`, as used by generate().
  DecoderCache start(const torch::Tensor& memory, int64_t capacity,
                     const AttentionMask& memory_mask = {});
  /// A causal decode() for the tokens tgt (B, t) that follow those in the cache. Returns the logits
  /// (B, tgt_vocab) of the token after the last of them.
  torch::Tensor step(const torch::Tensor& tgt, DecoderCache& cache);

  TransformerOptions options;                        ///< the options given to the constructor
  TokenAndPositionEmbedding src_embedding{nullptr},  ///< embeds source tokens
      tgt_embedding{nullptr};                        ///< embeds target tokens
  TransformerEncoder encoder{nullptr};               ///< the encoder
  TransformerDecoder decoder{nullptr};               ///< the decoder
  OutputProjection final_layer{nullptr};             ///< the output layer

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())},
                                  {3, torch::nn::AnyValue(AttentionMask())},
                                  {4, torch::nn::AnyValue(std::optional<AttentionMask>())})

 private:
  void tie();
};

TORCH_MODULE(Transformer);

}  // namespace posenc
