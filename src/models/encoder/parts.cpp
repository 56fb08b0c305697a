#include "models/encoder/parts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "posenc/positions/rotary/rotary.h"
#include "posenc/positions/sinusoid/positions.h"
#include "positions/functional/lookup.h"
#include "positions/nn/augmented_positions.h"

namespace posenc {
namespace {

using encoder::Pooling;

// A mask of another shape would be broadcast, or rejected by the layers with a less specific error.
void check_mask(const at::Tensor& mask, at::IntArrayRef ids) {
  TORCH_CHECK_TYPE(at::isIntegralType(mask.scalar_type(), /*includeBool=*/true),
                   "[Encoder] attention_mask must be bool or an integer type. Got ",
                   mask.scalar_type());
  TORCH_CHECK_VALUE(mask.sizes() == ids, "[Encoder] attention_mask must be (B, L) = ", ids,
                    ". Got ", mask.sizes());
}

void check_embeds(const EncoderOptions& options, const at::Tensor& ids,
                  const EncoderInputs& inputs) {
  const at::Tensor& embeds = inputs.inputs_embeds();
  TORCH_CHECK_VALUE(!options.patches(), "[Encoder] an encoder of images takes no inputs_embeds");
  TORCH_CHECK_VALUE(!ids.defined(),
                    "[Encoder] ids must be an undefined tensor where inputs_embeds are given. Got ",
                    ids.sizes());
  TORCH_CHECK_VALUE(embeds.dim() == 3, "[Encoder] inputs_embeds must be (B, L, E). Got ",
                    embeds.sizes());
  TORCH_CHECK_VALUE(embeds.size(1) > 0 || options.pooling() == Pooling::None,
                    "[Encoder] sequences must have a token that can be pooled. Got ",
                    embeds.sizes());
  const bool finds_token =
      options.pooling() == Pooling::EndToken || options.pooling() == Pooling::LargestToken;
  TORCH_CHECK_VALUE(!finds_token,
                    "[Encoder] inputs_embeds must be of an encoder whose pooling does not look for "
                    "a token among the ids. Got one that does");
  if (inputs.attention_mask().defined())
    check_mask(inputs.attention_mask(), embeds.sizes().slice(0, 2));
}

// What an encoder of features takes.
void check_features(const EncoderOptions& options, const EncoderInputs& inputs) {
  TORCH_CHECK_VALUE(inputs.inputs_embeds().defined(),
                    "[Encoder] an encoder of features takes them as inputs_embeds (B, L, D). Got "
                    "an undefined tensor");
  const std::pair<const char*, const at::Tensor&> of_text[] = {
      {"token_type_ids", inputs.token_type_ids()},
      {"task_type_ids", inputs.task_type_ids()},
      {"bbox", inputs.bbox()}};
  for (const auto& [name, tensor] : of_text) {
    TORCH_CHECK_VALUE(!tensor.defined(), "[Encoder] an encoder of features takes no ", name);
  }
  TORCH_CHECK_VALUE(
      !inputs.position_ids().defined() || options.encoder().layer().rotary(),
      "[Encoder] an encoder of features without a rotary embedding takes no "
      "position_ids. Got ",
      inputs.position_ids().defined() ? inputs.position_ids().sizes() : at::IntArrayRef());
}

// What an encoder with a decoder lacks.
void check_decoder_inputs(const EncoderInputs& inputs) {
  const std::pair<const char*, bool> others[] = {
      {"token_type_ids", inputs.token_type_ids().defined()},
      {"position_ids", inputs.position_ids().defined()},
      {"task_type_ids", inputs.task_type_ids().defined()},
      {"bbox", inputs.bbox().defined()},
      {"inputs_embeds", inputs.inputs_embeds().defined()},
      {"output_hidden_states", inputs.output_hidden_states()},
      {"output_attentions", inputs.output_attentions()}};
  for (const auto& [name, is_given] : others)
    TORCH_CHECK_VALUE(!is_given, "[Encoder] an encoder with a decoder takes no ", name);
}

}  // namespace

RotaryEmbedding rotary_of_layer(const torch::nn::Module& layer) {
  if (const auto* const own = layer.as<ConformerEncoderLayerImpl>()) return own->rotary;
  const auto* const own = layer.as<TransformerEncoderLayerImpl>();
  return own != nullptr && own->self_attn ? own->self_attn->rotary : RotaryEmbedding(nullptr);
}

bool takes_features(const EncoderOptions& options) {
  return !options.embeddings() && !options.patches();
}

const char* input_name(const EncoderOptions& options) {
  return options.embeddings() ? "ids" : options.patches() ? "images" : "features";
}

bool layers_see_padding(const EncoderOptions& options) {
  const TransformerEncoderOptions& stack = options.encoder();
  const auto sees_all = [](const TransformerLayerOptions& layer) {
    return layer.mixing() != Mixing::Attention || layer.conformer();
  };
  return stack.layers().empty()
             ? sees_all(stack.layer())
             : std::any_of(stack.layers().begin(), stack.layers().end(), sees_all);
}

bool sees_padding(const EncoderOptions& options) {
  const auto& embeddings = options.embeddings();
  return layers_see_padding(options) || (embeddings && embeddings->trigram_input());
}

void check_encoder_inputs(const EncoderOptions& options, const at::Tensor& input,
                          const EncoderInputs& inputs) {
  if (takes_features(options)) check_features(options, inputs);
  if (options.transformer()) check_decoder_inputs(inputs);
  if (inputs.inputs_embeds().defined()) return check_embeds(options, input, inputs);
  TORCH_CHECK_VALUE(
      input.defined(), "[Encoder] ",
      options.embeddings() ? "ids must be (B, L)" : "pixel_values must be (B, C, H, W)",
      ". Got an undefined tensor");
  if (options.embeddings()) {
    TORCH_CHECK_VALUE(input.dim() == 2, "[Encoder] ids must be (B, L)",
                      input.dim() == 4 ? ": an encoder of token ids takes no pixel_values" : "",
                      ". Got ", input.sizes());
    TORCH_CHECK_VALUE(input.size(1) > 0 || options.pooling() == Pooling::None,
                      "[Encoder] sequences must have a token that can be pooled. Got ",
                      input.sizes());
    if (inputs.attention_mask().defined()) check_mask(inputs.attention_mask(), input.sizes());
    return;
  }
  const std::pair<const char*, const at::Tensor&> of_text[] = {
      {"attention_mask", inputs.attention_mask()},
      {"token_type_ids", inputs.token_type_ids()},
      {"position_ids", inputs.position_ids()},
      {"task_type_ids", inputs.task_type_ids()},
      {"bbox", inputs.bbox()}};
  for (const auto& [name, tensor] : of_text) {
    TORCH_CHECK_VALUE(!tensor.defined(), "[Encoder] an encoder of images takes no ", name);
  }
}

EncoderInputs with_mask(const EncoderOptions& options, const at::Tensor& ids,
                        const EncoderInputs& inputs) {
  const bool finds_padding = (options.zero_padding() || options.masks_padding()) &&
                             options.pad_token_id() && ids.defined();
  if (!finds_padding || inputs.attention_mask().defined()) return inputs;
  if (options.masks_padding())
    return EncoderInputs(inputs).attention_mask(ids.ne(*options.pad_token_id()));
  const at::Tensor count = ids.ne(*options.pad_token_id()).sum(1, /*keepdim=*/true);
  const at::Tensor mask = at::arange(ids.size(1), ids.options().dtype(at::kLong)) < count;
  return EncoderInputs(inputs).attention_mask(mask);
}

namespace {

bool has_segments(const EncoderOptions& options) {
  const auto& transformer_xl = options.encoder().layer().transformer_xl();
  return transformer_xl && transformer_xl->segments();
}

// The inputs of the embeddings of token ids.
EncoderEmbeddingsInputs embeddings_inputs(const EncoderOptions& options,
                                          const EncoderInputs& inputs) {
  const bool are_rotated = options.encoder().layer().rotary() && inputs.position_ids().defined() &&
                           options.embeddings()->position_ids() == embeddings::PositionIds::None;
  return EncoderEmbeddingsInputs()
      .attention_mask(inputs.attention_mask())
      .token_type_ids(has_segments(options) ? at::Tensor() : inputs.token_type_ids())
      .position_ids(are_rotated ? at::Tensor() : inputs.position_ids())
      .task_type_ids(inputs.task_type_ids())
      .bbox(inputs.bbox())
      .inputs_embeds(inputs.inputs_embeds());
}

at::Tensor raw_embeds(const EncoderOptions& options, const EncoderInputs& inputs) {
  const at::Tensor& embeds = inputs.inputs_embeds();
  const int64_t width = options.encoder().layer().d_model();
  TORCH_CHECK_VALUE(embeds.size(2) == width, "[Encoder] inputs_embeds must be (B, L, ", width,
                    "). Got ", embeds.sizes());
  return embeds;
}

// The rows of ids after token dropout.
at::Tensor dropped_tokens(const EncoderOptions& options, TokenRows rows_of, const at::Tensor& ids,
                          const at::Tensor& mask) {
  constexpr double kShareInTraining = 1.0 - 0.15 * 0.8;
  const at::Tensor rows = rows_of(ids);
  const at::Tensor dropped = ids.eq(*options.token_dropout_id());
  const at::Tensor count = dropped.sum(-1).to(at::kFloat);
  const at::Tensor share = mask.defined() ? count / mask.ne(0).sum(-1) : count / ids.size(1);
  return rows.masked_fill(dropped.unsqueeze(-1), 0.0) * kShareInTraining /
         (1.0 - share).view({-1, 1, 1}).to(rows.scalar_type());
}

// Whether the embeddings are the rows of tokens, with nothing added.
bool are_tokens_alone(const EncoderEmbeddingsOptions& options) {
  return options.position_ids() == embeddings::PositionIds::None &&
         options.type_vocab_size() == 0 && options.task_type_vocab_size() == 0 &&
         options.box_positions() == 0 && !options.types_from_tokens() &&
         options.norm() == embeddings::Norm::None &&
         options.projection() == embeddings::Projection::None && options.dropout() == 0.0;
}

at::Tensor embed_dropped(const EncoderOptions& options, TokenRows rows_of, const at::Tensor& ids,
                         const EncoderInputs& inputs, EmbedTokens embed) {
  const EncoderEmbeddingsOptions& own = *options.embeddings();
  const at::Tensor rows = dropped_tokens(options, rows_of, ids, inputs.attention_mask());
  EncoderEmbeddingsInputs given = embeddings_inputs(options, inputs);
  const bool has_others = given.position_ids().defined() || given.token_type_ids().defined() ||
                          given.task_type_ids().defined() ||
                          given.bbox().defined();  // which are refused
  if (are_tokens_alone(own) && !has_others) return rows;
  if (own.position_ids() == embeddings::PositionIds::FromIds && !given.position_ids().defined())
    given.position_ids(positions_from_ids(ids, *own.padding_idx()));
  return embed({}, given.inputs_embeds(rows));
}

}  // namespace

at::Tensor token_rows(const EncoderOptions& options, const at::Tensor& tokens,
                      const at::Tensor& ids) {
  const int64_t padding = functional::padding_row(
      "Encoder", "padding_idx", options.embeddings()->padding_idx(), tokens.size(0));
  return functional::lookup({"Encoder", "id", "vocab_size"}, ids, tokens, padding);
}

at::Tensor embed_tokens(const EncoderOptions& options, TokenRows rows_of, const at::Tensor& ids,
                        const EncoderInputs& inputs, EmbedTokens embed) {
  const bool is_raw = options.raw_inputs_embeds() && inputs.inputs_embeds().defined();
  if (is_raw) return raw_embeds(options, inputs);
  const at::Tensor rows = takes_features(options) ? raw_embeds(options, inputs)
                          : options.token_dropout_id() && ids.defined()
                              ? embed_dropped(options, rows_of, ids, inputs, embed)
                              : embed(ids, embeddings_inputs(options, inputs));
  const at::Tensor& mask = inputs.attention_mask();
  if (!options.zero_padding() || !mask.defined()) return rows;
  // A product has zeros of either sign, which transformers has for token ids alone.
  if (takes_features(options)) return rows.masked_fill(mask.eq(0).unsqueeze(-1), 0.0);
  return rows * mask.ne(0).unsqueeze(-1).to(rows.scalar_type());
}

at::Tensor decoder_ids(const EncoderOptions& options, const at::Tensor& ids) {
  at::Tensor first;
  if (options.decoder_start_token_id()) {
    first = at::full({ids.size(0), 1}, *options.decoder_start_token_id(), ids.options());
  } else {  // the last by number, not by place
    const at::Tensor count = ids.ne(*options.pad_token_id()).sum(1, /*keepdim=*/true);
    first = ids.gather(1, (count - 1).remainder(ids.size(1)));
  }
  return at::cat({first, ids.narrow(1, 0, ids.size(1) - 1)}, 1);
}

at::Tensor kept_rows(const EncoderOptions& options, const EncoderInputs& inputs) {
  const at::Tensor& mask = inputs.attention_mask();
  return options.zero_hidden_padding() && mask.defined() ? mask.ne(0) : at::Tensor();
}

int64_t tokens_before_patches(const EncoderOptions& options) {
  if (!options.patches()) return 0;
  const VisionEmbeddingsOptions& patches = *options.patches();
  return patches.class_tokens() + (patches.distillation_token() ? 1 : 0) +
         patches.register_tokens().value_or(0);
}

at::Tensor rotary_position_ids(const EncoderOptions& options, const at::Tensor& input,
                               const EncoderInputs& inputs, bool is_training) {
  const auto& rotary = options.encoder().layer().rotary();
  if (!rotary || !options.patches()) return rotary ? inputs.position_ids() : at::Tensor();
  const relative::Grid sides = *grid_of(options, input);
  at::Tensor grid = rotary_grid(rotary->rotary(), {sides.height, sides.width});
  const PositionAugmentation augmentation = {options.pos_embed_shift(), options.pos_embed_jitter(),
                                             options.pos_embed_rescale()};
  if (is_training && !augmentation.is_none()) grid = augmented_positions(grid, augmentation);
  const int64_t before = tokens_before_patches(options);
  // An angle of 0 leaves a token as it is.
  return at::cat({at::zeros({before, grid.size(1)}, grid.options()), grid}).to(input.device());
}

at::Tensor segments_of(const EncoderOptions& options, const EncoderInputs& inputs) {
  return has_segments(options) ? inputs.token_type_ids() : at::Tensor();
}

AttentionMask encoder_mask(const EncoderOptions& options, const EncoderInputs& inputs,
                           const DocumentPositionBias& bias, int64_t length) {
  AttentionMask mask;
  if (inputs.attention_mask().defined()) mask = AttentionMask::key_padding(inputs.attention_mask());
  if (options.causal()) mask = mask & AttentionMask::causal();
  if (!bias.is_empty())
    mask = mask & AttentionMask::additive(bias.ptr()->forward(length, inputs.bbox()));
  return mask;
}

bool has_grid_bias(const EncoderOptions& options) {
  const TransformerEncoderOptions& stack = options.encoder();
  const auto has = [](const TransformerLayerOptions& layer) {
    return layer.grid_bias().has_value();
  };
  return stack.grid_bias() ||
         (stack.layers().empty() ? has(stack.layer())
                                 : std::any_of(stack.layers().begin(), stack.layers().end(), has));
}

std::optional<relative::Grid> grid_of(const EncoderOptions& options, const at::Tensor& input) {
  if (!options.patches()) return std::nullopt;
  const VisionEmbeddingsOptions& patches = *options.patches();
  return relative::Grid{input.size(-2) / patches.patch_height(),
                        input.size(-1) / patches.patch_width()};
}

}  // namespace posenc
