#pragma once

// posenc-budget: the options of one class, and the class

#include <limits>
#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/export.h"
#include "posenc/positions/nn/audio_embeddings.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/transformer/layers/transformer_decoder.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/transformer/output_projection.h"
#include "posenc/transformer/tying.h"

namespace posenc POSENC_EXPORT {

/// Options of Transformer.
struct TransformerOptions {
  /// The default options for these vocabularies.
  TransformerOptions(int64_t src_vocab, int64_t tgt_vocab)
      : src_vocab_(src_vocab), tgt_vocab_(tgt_vocab) {}

  /// How many tokens a source or target may have: max_len, or any number.
  int64_t most_tokens() const {
    return position_ids() == embeddings::PositionIds::Arange ? max_len()
                                                             : std::numeric_limits<int64_t>::max();
  }

  /// Number of tokens in the source vocabulary; 0 with src_features.
  TORCH_ARG(int64_t, src_vocab);
  /// Number of tokens in the target vocabulary.
  TORCH_ARG(int64_t, tgt_vocab);
  /// Features of sound as the source in place of ids, whose d_model must be that of the model: its
  /// embeddings read nothing of the options of tokens below. None unless set.
  TORCH_ARG(std::optional<AudioEmbeddingsOptions>, src_features) = std::nullopt;
  /// Width D of the model.
  TORCH_ARG(int64_t, d_model) = 512;
  /// Number of heads of every attention; must divide d_model, unless head_dim is set.
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
  /// Maximum length of source and target in tokens. Without positions there is none, and with
  /// PositionIds::FromIds the table grows.
  TORCH_ARG(int64_t, max_len) = 5000;
  /// Probability of every dropout, in [0, 1).
  TORCH_ARG(double, dropout) = 0.1;
  /// A probability for each dropout of the layers in place of `dropout`.
  TORCH_ARG(std::optional<LayerDropouts>, dropouts) = std::nullopt;
  /// Which vocabulary matrices share a weight.
  TORCH_ARG(Tying, tie) = Tying::None;
  /// Factor of the token vectors, before positions are added.
  TORCH_ARG(Scale, scale) = Scale::SqrtDim;
  /// scale of the decoder's embeddings, if different.
  TORCH_ARG(std::optional<Scale>, decoder_scale) = std::nullopt;
  /// The row of both token tables that gets no gradient from them, and that PositionIds::FromIds
  /// does not count.
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// How tokens are numbered; see TokenAndPositionEmbeddingOptions.
  TORCH_ARG(embeddings::PositionIds, position_ids) = embeddings::PositionIds::Arange;
  /// Trained tables of the positions of tokens, one for each stack, in place of sinusoids.
  TORCH_ARG(bool, learned_positions) = false;
  /// Rows of a trained table before that of the first position: 2 in BART.
  TORCH_ARG(int64_t, position_offset) = 0;
  /// Where the embeddings have a layer norm.
  TORCH_ARG(embeddings::Norm, embedding_norm) = embeddings::Norm::None;
  /// embedding_norm of the decoder, if different.
  TORCH_ARG(std::optional<embeddings::Norm>, decoder_embedding_norm) = std::nullopt;
  /// How the token tables are initialised; the reference class has StandardNormal.
  TORCH_ARG(EmbeddingInit, embedding_init) = EmbeddingInit::InverseSqrtDim;
  /// The sinusoid of the positions; by default the paper's. Its dim must be d_model.
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
  /// Width of a head; d_model / num_heads unless set.
  TORCH_ARG(std::optional<int64_t>, head_dim) = std::nullopt;
  /// The factor of the scores of every attention; 1 / sqrt(head_dim) unless set.
  TORCH_ARG(std::optional<double>, attention_scale) = std::nullopt;
  /// A relative position bias with this index in the encoder's self-attention: T5; none unless set.
  TORCH_ARG(std::optional<relative::Index>, relative) = std::nullopt;
  /// The same in the decoder's.
  TORCH_ARG(std::optional<relative::Index>, decoder_relative) = std::nullopt;
  /// Whether each layer has a table of its own, as in UMT5, and not one for all layers of a stack.
  TORCH_ARG(bool, relative_in_each_layer) = false;
  /// ALiBi in the self-attention of both stacks, which must then have no relative position bias;
  /// none unless set.
  TORCH_ARG(std::optional<relative::Alibi>, alibi) = std::nullopt;
  /// The structure of the feed-forward networks.
  TORCH_ARG(FeedForward, feed_forward) = FeedForward::Plain;
  /// Activation of the feed-forward networks.
  TORCH_ARG(Activation, activation) = Activation::ReLU;
  /// Normalises the input of each block (pre-norm); false: its output, as in the paper.
  TORCH_ARG(bool, norm_first) = false;
  /// Adds a final norm to each stack; by default only with norm_first.
  TORCH_ARG(std::optional<bool>, final_norm) = std::nullopt;
  /// The kind of the layers' norms and of the final ones.
  TORCH_ARG(NormKind, norm_kind) = NormKind::Layer;
  /// Added to the variance, or the mean square, in the norms.
  TORCH_ARG(double, layer_norm_eps) = 1e-5;
  /// Whether the layers' linear maps and norms have a bias.
  TORCH_ARG(bool, bias) = true;
  /// Whether the keys of attentions have a bias where queries have one; Whisper's have none. See
  /// TransformerLayerOptions.
  TORCH_ARG(bool, key_bias) = true;
  /// Whether final_layer has a bias.
  TORCH_ARG(bool, output_bias) = true;
  /// The factor of the decoder's output before final_layer, which needs a final norm unless it is
  /// 1: T5's 1 / sqrt(d_model).
  TORCH_ARG(double, output_scale) = 1.0;
  /// Draws Python's dropout masks; see functional::MultiheadAttentionFuncOptions.
  TORCH_ARG(bool, python_dropout_order) = false;

  POSENC_FIELDS(TransformerOptions, src_vocab_, tgt_vocab_, src_features_, d_model_, num_heads_,
                num_encoder_layers_, num_decoder_layers_, d_ff_, decoder_num_heads_, decoder_d_ff_,
                max_len_, tie_, scale_, decoder_scale_, padding_idx_, position_ids_,
                learned_positions_, position_offset_, embedding_norm_, decoder_embedding_norm_,
                sinusoid_, head_dim_, attention_scale_, relative_, decoder_relative_,
                relative_in_each_layer_, alibi_, feed_forward_, activation_, norm_first_,
                final_norm_, norm_kind_, layer_norm_eps_, bias_, key_bias_, output_bias_,
                output_scale_);
  POSENC_TRAINING_FIELDS(dropout_, dropouts_, embedding_init_, python_dropout_order_);
};

/// An encoder-decoder Transformer, from token ids to logits:
/// final_layer(decoder(tgt_embedding(tgt), encoder(src_embedding(src)))).
/// src: (B, S), tgt: (B, L), integers  ->  (B, L, tgt_vocab).
///
/// With options.src_features the source is sound: src_features(src) of log-mel features, src:
/// (B, M, W), floating-point, which the encoder reads as S = W / 2 vectors.
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
/// Keys: `src_embedding.token_embedding.weight`, `src_embedding.position_encoding.pe`, or what
/// TokenAndPositionEmbedding has in its place, the same for `tgt_embedding`,
/// `encoder.layers.0.self_attn.in_proj_weight`, ..., `decoder.*`, `final_layer.weight`,
/// `final_layer.bias`; with options.src_features `src_features.*` (AudioEmbeddings) in place of
/// `src_embedding.*`.
///
/// Errors: those of the parts; c10::ValueError for tied vocabularies of different sizes. Source:
/// the reference class `Transformer` in notebooks_ref; for the options that it lacks, the
/// encoder-decoders of transformers 5.23.
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

  /// Returns the memory (B, S, D), the encoder's output. `src_mask` is that of its S vectors.
  torch::Tensor encode(const torch::Tensor& src, const AttentionMask& src_mask = {});
  /// Returns the logits (B, L, tgt_vocab).
  torch::Tensor decode(const torch::Tensor& tgt, const torch::Tensor& memory,
                       const AttentionMask& tgt_mask = {}, const AttentionMask& memory_mask = {});

  /// Makes a cache for `capacity` target tokens that attend to `memory`, as used by generate().
  DecoderCache start(const torch::Tensor& memory, int64_t capacity,
                     const AttentionMask& memory_mask = {});
  /// A causal decode() for the tokens tgt (B, t) that follow those in the cache. Returns the logits
  /// (B, tgt_vocab) of the token after the last of them. `memory_weights`, if given, receives what
  /// TransformerDecoder::step() gives it.
  torch::Tensor step(const torch::Tensor& tgt, DecoderCache& cache,
                     torch::Tensor* memory_weights = nullptr);

  TransformerOptions options;                        ///< the options given to the constructor
  TokenAndPositionEmbedding src_embedding{nullptr},  ///< embeds source tokens, or null
      tgt_embedding{nullptr};                        ///< embeds target tokens
  AudioEmbeddings src_features{nullptr};             ///< with options.src_features
  TransformerEncoder encoder{nullptr};               ///< the encoder
  TransformerDecoder decoder{nullptr};               ///< the decoder
  OutputProjection final_layer{nullptr};             ///< the output layer

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(AttentionMask())},
                                  {3, torch::nn::AnyValue(AttentionMask())},
                                  {4, torch::nn::AnyValue(std::optional<AttentionMask>())})

 private:
  torch::Tensor embed_source(const torch::Tensor& src);
  void tie();
};

TORCH_MODULE(Transformer);

}  // namespace posenc
