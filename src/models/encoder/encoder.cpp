#include "posenc/models/encoder.h"

#include <ostream>

#include "core/check.h"
#include "core/low_rank.h"
#include "core/print_fields.h"
#include "models/encoder/config.h"
#include "models/encoder/parts.h"
#include "posenc/positions/functional/dropout.h"
#include "positions/nn/augmented_positions.h"
#include "positions/nn/weights.h"

namespace posenc {
namespace {

void check_encoder(const EncoderOptions& options) {
  const int64_t width = options.encoder().layer().d_model();
  const bool is_text = options.embeddings().has_value();
  const bool is_image = options.patches().has_value();
  TORCH_CHECK_VALUE(!is_text || !is_image,
                    "[Encoder] options must have either embeddings or patches, or neither for "
                    "features. Got both");
  TORCH_CHECK_VALUE(is_image || !options.windows(),
                    "[Encoder] windows must be of an encoder of images. Got ",
                    is_text ? "token ids" : "features");
  const int64_t first = options.windows() ? options.windows()->first_layer().d_model() : width;
  const int64_t embeddings = is_text    ? options.embeddings()->d_model()
                             : is_image ? options.patches()->d_model()
                                        : first;
  TORCH_CHECK_VALUE(embeddings == first,
                    "[Encoder] d_model of the embeddings must be that of the layers, ", first,
                    ". Got ", embeddings);
  TORCH_CHECK_VALUE(options.encoder().layer().batch_first(),
                    "[Encoder] the layers must have batch_first(true)");
  TORCH_CHECK_VALUE(!is_text || !has_grid_bias(options),
                    "[Encoder] grid_bias must be of an encoder of images. Got token ids");
  TORCH_CHECK_VALUE(!has_grid_bias(options) || tokens_before_patches(options) == 1,
                    "[Encoder] grid_bias must be with one token before the patches. Got ",
                    tokens_before_patches(options));
  TORCH_CHECK_VALUE(
      !options.document_bias() || (is_text && options.document_bias()->num_heads() ==
                                                  options.encoder().layer().num_heads()),
      "[Encoder] document_bias must be of an encoder of token ids, with its heads. "
      "Got others");
  TORCH_CHECK_VALUE(
      !is_text || options.pooling() != encoder::Pooling::NormOfMean,
      "[Encoder] Pooling::NormOfMean must be of an encoder of images, since it has no "
      "mask. Got token ids");
  TORCH_CHECK_VALUE(
      !is_image || !(options.zero_padding() || options.pad_token_id() || options.masks_padding() ||
                     options.token_dropout_id() || options.raw_inputs_embeds()),
      "[Encoder] an encoder of images must have no padding: zero_padding, pad_token_id, "
      "masks_padding, token_dropout_id and raw_inputs_embeds are of token ids");
  TORCH_CHECK_VALUE(!options.masks_padding() || (is_text && options.pad_token_id()),
                    "[Encoder] masks_padding(true) must be of an encoder of token ids, with a "
                    "pad_token_id. Got others");
  TORCH_CHECK_VALUE(options.zero_padding() || !options.zero_hidden_padding(),
                    "[Encoder] zero_hidden_padding(true) must be with zero_padding(true). Got "
                    "zero_padding(false)");
  const auto& rotary = options.encoder().layer().rotary();
  TORCH_CHECK_VALUE(!rotary || rotary->rotary().axial() == is_image,
                    "[Encoder] the rotary embedding of the layers must have one position of each ",
                    is_image ? "axis of images. Got one position" : "token. Got several");
  check_augmentation("Encoder", {options.pos_embed_shift(), options.pos_embed_jitter(),
                                 options.pos_embed_rescale()});
  const bool finds_token = options.pooling() == encoder::Pooling::EndToken ||
                           options.pooling() == encoder::Pooling::LastEndToken ||
                           options.pooling() == encoder::Pooling::LargestToken ||
                           options.pooling() == encoder::Pooling::LastToken;
  TORCH_CHECK_VALUE(is_text || !finds_token,
                    "[Encoder] the pooling of an encoder of images or features must not look for a "
                    "token");
  TORCH_CHECK_VALUE(is_image || options.pooling() != encoder::Pooling::Attention,
                    "[Encoder] Pooling::Attention must be of an encoder of images, since it has no "
                    "mask. Got ",
                    is_text ? "token ids" : "features");
  TORCH_CHECK_VALUE(
      !options.output_dim() || (is_text && !has_pooling_weights(options)),
      "[Encoder] output_dim must be of an encoder of token ids whose pooling has no weights. Got "
      "another");
  TORCH_CHECK_VALUE(!options.transformer() || is_text,
                    "[Encoder] transformer must be of an encoder of token ids. Got ",
                    is_image ? "images" : "features");
  TORCH_CHECK_VALUE(!options.transformer() || options.transformer()->d_model() == width,
                    "[Encoder] d_model of transformer must be that of the layers, ", width,
                    ". Got ", options.transformer() ? options.transformer()->d_model() : 0);
  TORCH_CHECK_VALUE(
      !options.transformer() || options.decoder_start_token_id() || options.pad_token_id(),
      "[Encoder] transformer must be with a decoder_start_token_id, or a pad_token_id, to find the "
      "last id of each sequence. Got neither");
  TORCH_CHECK_VALUE(is_text || !options.token_dropout_id(),
                    "[Encoder] token_dropout_id must be of an encoder of token ids. Got features");
  const bool has_neck = options.windows() && options.windows()->neck();
  TORCH_CHECK_VALUE(!has_neck || options.pooling() == encoder::Pooling::None,
                    "[Encoder] the pooling of windows with a neck must be Pooling::None");
}

}  // namespace

EncoderImpl::EncoderImpl(EncoderOptions options_) : options(std::move(options_)) {
  EncoderImpl::reset();
}

void EncoderImpl::reset() {
  check_encoder(options);
  const auto& layer = options.encoder().layer();
  if (options.transformer()) {
    transformer = register_module("transformer", Transformer(*options.transformer()));
  } else if (options.embeddings()) {
    embeddings = register_module("embeddings", EncoderEmbeddings(*options.embeddings()));
  } else if (options.patches()) {
    patches = register_module("embeddings", VisionEmbeddings(*options.patches()));
  }
  if (options.windows()) {
    windows = register_module("encoder", WindowEncoder(*options.windows()));
  } else if (!options.transformer()) {
    encoder = register_module("encoder", TransformerEncoder(options.encoder()));
  }
  if (options.output_dim()) {
    output_projection = register_module(
        "output_projection",
        make_linear(torch::nn::LinearOptions(layer.d_model(), *options.output_dim()).bias(false)));
  }
  if (has_pooler(options)) {
    const int64_t width = options.pooler_dim().value_or(layer.d_model());
    pooler =
        register_module("pooler", make_linear(torch::nn::LinearOptions(layer.d_model(), width)));
  }
  if (has_pooler_norm(options)) {
    pooler_norm = register_module(
        "pooler_norm", LayerNorm(LayerNormOptions(layer.d_model()).eps(layer.layer_norm_eps())));
  }
  if (options.document_bias()) {
    document_bias =
        register_module("document_bias", DocumentPositionBias(*options.document_bias()));
  }
  if (options.pooling() == encoder::Pooling::Attention) {
    attention_pooler =
        register_module("attention_pooler",
                        AttentionPooling(AttentionPoolingOptions(layer.d_model(), layer.num_heads())
                                             .d_ff(layer.d_ff())
                                             .activation(layer.activation())
                                             .layer_norm_eps(layer.layer_norm_eps())));
  }
}

void EncoderImpl::reset_parameters() {
  if (embeddings) embeddings->reset_parameters();
  if (patches) patches->reset_parameters();
  if (encoder) encoder->reset_parameters();
  if (windows) windows->reset_parameters();
  if (transformer) transformer->reset_parameters();
  if (output_projection) output_projection->reset_parameters();
  if (pooler) pooler->reset_parameters();
  if (pooler_norm) pooler_norm->reset_parameters();
  if (attention_pooler) attention_pooler->reset_parameters();
  if (document_bias) document_bias->reset_parameters();
}

void EncoderImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "Encoder", options,
                       EncoderOptions(options.encoder())
                           .embeddings(options.embeddings())
                           .patches(options.patches())
                           .windows(options.windows())
                           .transformer(options.transformer())
                           .origin(options.origin()));
}

void EncoderImpl::extend_positions(int64_t max_tokens, PositionExtension rule) {
  TORCH_CHECK_VALUE(!transformer,
                    "[Encoder] extend_positions() is for an encoder alone. Got one with a decoder");
  TORCH_CHECK_VALUE(embeddings,
                    "[Encoder] extend_positions() is for an encoder of token ids; images "
                    "of other sizes have their positions resized, and features have none");
  embeddings->extend_positions(max_tokens, rule);
  options.embeddings()->position_rows(embeddings->options.position_rows());
}

// Padding is masked where keys are those of the encoder.
EncoderOutput EncoderImpl::decoded(const torch::Tensor& ids, const EncoderInputs& inputs) {
  EncoderOutput out;
  const AttentionMask keys = encoder_mask(options, inputs, {nullptr}, ids.size(1));
  out.embeddings = transformer->src_embedding->forward(ids);
  const torch::Tensor memory = transformer->encoder->forward(out.embeddings, keys);
  const torch::Tensor target = transformer->tgt_embedding->forward(decoder_ids(options, ids));
  out.last_hidden_state =
      transformer->decoder->forward(target, memory, AttentionMask::causal(), keys);
  if (options.pooling() != encoder::Pooling::None)
    out.pooled = pooled_rows(options, out.last_hidden_state, ids);
  return out;
}

// The input of the first layer for tokens after `offset` others.
torch::Tensor EncoderImpl::embed(const torch::Tensor& input, const EncoderInputs& inputs,
                                 int64_t offset) {
  const auto embed = [&](const torch::Tensor& ids, const EncoderEmbeddingsInputs& of_embeddings) {
    return embeddings->forward(ids, EncoderEmbeddingsInputs(of_embeddings).offset(offset));
  };
  const auto rows_of = [&](const torch::Tensor& ids) {
    return token_rows(options, embeddings->tokens->weight, ids);
  };
  return embed_tokens(options, rows_of, input, inputs, embed);
}

// forward() of a causal encoder for the next tokens (B, t). The attention_mask is of all tokens so
// far, (B, T), with padding before those of a row.
EncoderOutput EncoderImpl::step(const torch::Tensor& ids, std::vector<KeyValueCache>& caches,
                                const EncoderInputs& inputs) {
  const int64_t past = caches.front().length();
  const torch::Tensor& mask = inputs.attention_mask();
  torch::Tensor positions;  // where they are not those of columns
  if (mask.defined()) positions = (mask.cumsum(1) - 1).clamp_min(0).narrow(1, past, ids.size(1));
  EncoderInputs own;
  const bool has_table = options.embeddings()->position_ids() != embeddings::PositionIds::None;
  const bool is_given = has_table && positions.defined();
  if (is_given) own.position_ids(positions + options.embeddings()->first_position());
  TransformerEncoderRecord record;
  record.output_hidden_states = inputs.output_hidden_states();
  EncoderOutput out;
  out.embeddings = embed(ids, own, is_given ? 0 : past);
  // Between two tokens of a row there are tokens alone, so that their distances are those of
  // columns.
  const AttentionMask seen = mask.defined() ? AttentionMask::key_padding(mask) : AttentionMask();
  out.last_hidden_state = encoder->step(out.embeddings, caches, seen, positions, &record);
  if (output_projection) out.last_hidden_state = output_projection->forward(out.last_hidden_state);
  out.hidden_states = std::move(record.hidden_states);
  if (record.output_hidden_states && !options.hidden_states_before_norm())
    out.hidden_states.back() = out.last_hidden_state;
  return out;
}

EncoderOutput EncoderImpl::forward(const torch::Tensor& input, const EncoderInputs& given) {
  check_encoder_inputs(options, input, given);
  if (transformer) return decoded(input, given);
  const EncoderInputs inputs = with_mask(options, input, given);
  EncoderOutput out;
  out.embeddings = patches ? patches->forward(input) : embed(input, inputs, 0);
  if (takes_features(options)) {
    out.embeddings =
        functional::dropout(out.embeddings, options.encoder().layer().dropout(), is_training());
  }
  TransformerEncoderRecord record;
  record.output_hidden_states = inputs.output_hidden_states();
  record.output_attentions = inputs.output_attentions();
  if (windows) {
    const relative::Grid grid = patches->grid(input.size(2), input.size(3));
    out.last_hidden_state =
        windows->forward_with(out.embeddings.unflatten(1, {grid.height, grid.width}), record);
  } else {
    out.last_hidden_state = encoder->forward_with(
        out.embeddings, encoder_mask(options, inputs, document_bias, out.embeddings.size(1)),
        record, rotary_position_ids(options, input, inputs, is_training()),
        kept_rows(options, inputs), segments_of(options, inputs), grid_of(options, input));
  }
  if (output_projection) out.last_hidden_state = output_projection->forward(out.last_hidden_state);
  out.hidden_states = std::move(record.hidden_states);
  out.attentions = std::move(record.attentions);
  if (record.output_hidden_states && !options.hidden_states_before_norm())
    out.hidden_states.back() = out.last_hidden_state;
  if (options.pooling() == encoder::Pooling::None) return out;
  if (attention_pooler) {
    out.pooled = attention_pooler->forward(out.last_hidden_state);
    return out;
  }
  out.pooled = pooled_rows(options, out.last_hidden_state, input);
  if (pooler_norm) out.pooled = pooler_norm->forward(out.pooled);
  if (pooler) out.pooled = forward_linear(*pooler, out.pooled);
  if (options.pooling() == encoder::Pooling::TanhOfFirst) out.pooled = out.pooled.tanh();
  return out;
}

EncoderOptions encoder_options_from_hf(const std::string& config) {
  EncoderConfig read =
      read_encoder_config(Settings::path_or_text("encoder_options_from_hf", config));
  if (!read.model.has_pooler) read.options.pooling(encoder::Pooling::None);
  return read.options;
}

std::vector<std::string> encoder_model_types() {
  std::vector<std::string> types;
  for (const hf::ModelType& model : hf::model_types()) {
    if (model.layers != nullptr || *model.part != '\0') types.emplace_back(model.type);
  }
  return types;
}

}  // namespace posenc
