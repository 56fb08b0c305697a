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
#include "positions/nn/rotary_embedding_internals.h"

namespace posenc {

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

std::vector<RotaryOptions> rotaries_by_length(const EncoderOptions& options) {
  std::vector<RotaryOptions> found;
  const auto add = [&](const TransformerLayerOptions& layer) {
    const bool depends = layer.rotary() && layer.rotary()->rotary().length_dependent() &&
                         layer.rotary()->length_rule() != LengthRule::Fixed;
    if (depends) found.push_back(layer.rotary()->rotary());
  };
  const TransformerEncoderOptions& stack = options.encoder();
  if (stack.layers().empty()) add(stack.layer());
  for (const TransformerLayerOptions& layer : stack.layers()) add(layer);
  return found;
}

int64_t frequency_group(const std::vector<RotaryOptions>& rotaries, int64_t length) {
  int64_t group = 0;
  for (const RotaryOptions& rotary : rotaries)
    group = std::max(group, frequency_length(rotary, length));
  return group;
}

int64_t output_width(const EncoderOptions& options) {
  return options.output_dim().value_or(options.encoder().layer().d_model());
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
