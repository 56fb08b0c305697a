#include "posenc/transformer/transformer.h"

#include <torch/nn/init.h>

#include <cmath>
#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "positions/nn/embed_module.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

bool shares_embeddings(Tying tying) {
  return tying == Tying::EncoderDecoder || tying == Tying::ThreeWay;
}

bool shares_output(Tying tying) {
  return tying == Tying::DecoderOutput || tying == Tying::ThreeWay;
}

bool has_final_norm(const TransformerOptions& options) {
  return options.final_norm().value_or(options.norm_first());
}

void check_source(const TransformerOptions& options) {
  const auto& features = options.src_features();
  if (!features) return check_positive("Transformer", "src_vocab", options.src_vocab());
  TORCH_CHECK_VALUE(options.src_vocab() == 0,
                    "[Transformer] src_vocab must be 0 with src_features. Got ",
                    options.src_vocab());
  TORCH_CHECK_VALUE(features->d_model() == options.d_model(),
                    "[Transformer] d_model of src_features must be d_model ", options.d_model(),
                    ". Got ", features->d_model());
  TORCH_CHECK_VALUE(!shares_embeddings(options.tie()), "[Transformer] tie must be Tying::None or ",
                    "DecoderOutput with src_features, a source without tokens. Got ",
                    to_string(options.tie()));
}

void check_transformer(const TransformerOptions& options) {
  check_source(options);
  check_positive("Transformer", "tgt_vocab", options.tgt_vocab());
  check_positive("Transformer", "d_model", options.d_model());
  check_positive("Transformer", "max_len", options.max_len());
  const auto check_heads = [&](const char* name, int64_t heads) {
    check_positive("Transformer", name, heads);
    TORCH_CHECK_VALUE(options.head_dim() || options.d_model() % heads == 0, "[Transformer] ", name,
                      " must divide d_model ", options.d_model(), ". Got ", heads);
  };
  check_heads("num_heads", options.num_heads());
  if (options.decoder_num_heads()) check_heads("decoder_num_heads", *options.decoder_num_heads());
  to_string(options.tie());  // throws for an invalid value
  TORCH_CHECK_VALUE(std::isfinite(options.output_scale()),
                    "[Transformer] output_scale must be finite. Got ", options.output_scale());
  TORCH_CHECK_VALUE(options.output_scale() == 1.0 || has_final_norm(options),
                    "[Transformer] output_scale must be 1 without a final norm. Got ",
                    options.output_scale());
  TORCH_CHECK_VALUE(!shares_embeddings(options.tie()) || options.src_vocab() == options.tgt_vocab(),
                    "[Transformer] tie(", to_string(options.tie()),
                    ") needs one vocabulary: src_vocab and tgt_vocab must be equal. Got ",
                    options.src_vocab(), " and ", options.tgt_vocab());
}

TransformerLayerOptions encoder_layer(const TransformerOptions& options) {
  return TransformerLayerOptions(options.d_model(), options.num_heads())
      .d_ff(options.d_ff())
      .dropout(options.dropout())
      .dropouts(options.dropouts())
      .feed_forward(options.feed_forward())
      .activation(options.activation())
      .head_dim(options.head_dim())
      .attention_scale(options.attention_scale())
      .norm_first(options.norm_first())
      .norm_kind(options.norm_kind())
      .layer_norm_eps(options.layer_norm_eps())
      .bias(options.bias())
      .key_bias(options.key_bias())
      .python_dropout_order(options.python_dropout_order());
}

TransformerLayerOptions decoder_layer(const TransformerOptions& options) {
  return encoder_layer(options)
      .num_heads(options.decoder_num_heads().value_or(options.num_heads()))
      .d_ff(options.decoder_d_ff().value_or(options.d_ff()));
}

// The options of a stack, of which all layers have the index, or the stack itself.
template <typename Stack>
Stack stack_of(const TransformerOptions& options, TransformerLayerOptions layer, int64_t layers,
               const std::optional<relative::Index>& index) {
  if (options.relative_in_each_layer()) layer.relative(index);
  Stack stack(layer, layers);
  if (!options.relative_in_each_layer()) stack.relative(index);
  return stack.norm(has_final_norm(options)).alibi(options.alibi());
}

TokenAndPositionEmbeddingOptions embedding_options(const TransformerOptions& options,
                                                   int64_t vocab) {
  return TokenAndPositionEmbeddingOptions(vocab, options.d_model(), options.max_len())
      .scale(options.scale())
      .embedding_init(options.embedding_init())
      .dropout(options.dropout())
      .sinusoid(options.sinusoid())
      .padding_idx(options.padding_idx())
      .position_ids(options.position_ids())
      .learned_positions(options.learned_positions())
      .position_offset(options.position_offset())
      .norm(options.embedding_norm())
      .layer_norm_eps(options.layer_norm_eps());
}

TokenAndPositionEmbedding decoder_embedding(const TransformerOptions& options) {
  auto own = embedding_options(options, options.tgt_vocab());
  if (options.decoder_scale()) own.scale(*options.decoder_scale());
  if (options.decoder_embedding_norm()) own.norm(*options.decoder_embedding_norm());
  return TokenAndPositionEmbedding(own);
}

void xavier(const torch::nn::Module& stack) {
  for (auto& parameter : stack.parameters()) {
    if (parameter.dim() > 1) torch::nn::init::xavier_uniform_(parameter);
  }
}

}  // namespace

TransformerImpl::TransformerImpl(TransformerOptions options_) : options(options_) {
  TransformerImpl::reset();
}

void TransformerImpl::reset() {
  check_transformer(options);
  if (const auto& features = options.src_features()) {
    src_features = register_module("src_features", AudioEmbeddings(*features));
  } else {
    src_embedding =
        register_module("src_embedding",
                        TokenAndPositionEmbedding(embedding_options(options, options.src_vocab())));
  }
  tgt_embedding = register_module("tgt_embedding", decoder_embedding(options));
  encoder = register_module("encoder", TransformerEncoder(stack_of<TransformerEncoderOptions>(
                                           options, encoder_layer(options),
                                           options.num_encoder_layers(), options.relative())));
  decoder =
      register_module("decoder", TransformerDecoder(stack_of<TransformerDecoderOptions>(
                                     options, decoder_layer(options), options.num_decoder_layers(),
                                     options.decoder_relative())));
  final_layer = register_module(
      "final_layer", OutputProjection(options.d_model(), options.tgt_vocab(), options.output_bias(),
                                      options.output_scale()));
  if (!SkipInit::is_active()) {
    xavier(*encoder);
    xavier(*decoder);
  }
  tie();
}

void TransformerImpl::reset_parameters() {
  if (src_embedding) src_embedding->reset_parameters();
  if (src_features) src_features->reset_parameters();
  tgt_embedding->reset_parameters();
  encoder->reset_parameters();
  decoder->reset_parameters();
  final_layer->reset_parameters();
  xavier(*encoder);
  xavier(*decoder);
}

// Each matrix is registered once, under the name that parameters() gives it in Python. The other
// users hold a plain tensor handle, so that optimisers and gradient clipping see it once.
void TransformerImpl::tie() {
  if (shares_embeddings(options.tie())) tgt_embedding->share_tokens(src_embedding->token_embedding);
  if (shares_output(options.tie())) final_layer->tie(tgt_embedding->token_embedding);
}

std::vector<TiedName> TransformerImpl::tied_names() const {
  const std::string src = "src_embedding.token_embedding.weight";
  const std::string tgt = "tgt_embedding.token_embedding.weight";
  const std::string out = "final_layer.weight";
  switch (options.tie()) {
    case Tying::None: break;
    case Tying::EncoderDecoder: return {{tgt, src}};
    case Tying::DecoderOutput: return {{out, tgt}};
    case Tying::ThreeWay: return {{tgt, src}, {out, src}};
  }
  return {};
}

std::shared_ptr<torch::nn::Module> TransformerImpl::clone(
    const std::optional<torch::Device>& device) const {
  auto copy = Cloneable<TransformerImpl>::clone(device);
  copy->as<TransformerImpl>()->tie();  // its cloned parts still refer to this model's matrices
  return copy;
}

void TransformerImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "Transformer", options, TransformerOptions(-1, -1));
}

torch::Tensor TransformerImpl::forward(const torch::Tensor& src, const torch::Tensor& tgt,
                                       const AttentionMask& src_mask, const AttentionMask& tgt_mask,
                                       const std::optional<AttentionMask>& memory_mask) {
  TORCH_CHECK_VALUE(
      src.dim() == (src_features ? 3 : 2) && tgt.dim() == 2 && src.size(0) == tgt.size(0),
      "[Transformer] src and tgt must be ",
      src_features ? "features (B, M, W) and ids (B, L)" : "ids (B, S) and (B, L)", ". Got ",
      src.sizes(), " and ", tgt.sizes());
  // Run both embeddings first, so that dropout draws in Python's order.
  const auto source = embed_source(src);
  const auto target = tgt_embedding->forward(tgt);
  const auto memory = encoder->forward(source, src_mask);
  return final_layer->forward(
      decoder->forward(target, memory, tgt_mask, memory_mask.value_or(src_mask)));
}

torch::Tensor TransformerImpl::encode(const torch::Tensor& src, const AttentionMask& src_mask) {
  return encoder->forward(embed_source(src), src_mask);
}

torch::Tensor TransformerImpl::embed_source(const torch::Tensor& src) {
  if (src_features) return src_features->forward(src);
  TORCH_CHECK_VALUE(src.dim() == 2, "[Transformer] src must be ids (B, S). Got ", src.sizes());
  return src_embedding->forward(src);
}

torch::Tensor TransformerImpl::decode(const torch::Tensor& tgt, const torch::Tensor& memory,
                                      const AttentionMask& tgt_mask,
                                      const AttentionMask& memory_mask) {
  TORCH_CHECK_VALUE(tgt.dim() == 2, "[Transformer] tgt must be ids (B, L). Got ", tgt.sizes());
  return final_layer->forward(
      decoder->forward(tgt_embedding->forward(tgt), memory, tgt_mask, memory_mask));
}

DecoderCache TransformerImpl::start(const torch::Tensor& memory, int64_t capacity,
                                    const AttentionMask& memory_mask) {
  TORCH_CHECK_VALUE(capacity <= options.most_tokens(), "[Transformer] at most max_len ",
                    options.max_len(), " target tokens. Got a capacity of ", capacity);
  return decoder->start(memory, capacity, memory_mask);
}

torch::Tensor TransformerImpl::step(const torch::Tensor& tgt, DecoderCache& cache,
                                    torch::Tensor* memory_weights) {
  TORCH_CHECK_VALUE(tgt.dim() == 2 && tgt.size(1) > 0,
                    "[Transformer] tgt must be ids (B, t), t > 0. Got ", tgt.sizes());
  const torch::NoGradGuard no_grad;
  return all_or_nothing(cache, [&] {
    const auto embedded = tgt_embedding->forward(tgt, /*offset=*/cache.length());
    const auto hidden = decoder->step(embedded, cache, memory_weights);  // (B, t, D)
    return final_layer->forward(hidden.select(1, -1));
  });
}

}  // namespace posenc
