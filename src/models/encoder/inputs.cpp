// The checks of what an encoder is given, and the mask of padding that is not.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <utility>

#include "models/encoder/parts.h"

namespace posenc {
namespace {

using encoder::Pooling;

// A mask of another shape would be broadcast, or rejected by the layers with a less specific error.
void check_masks(const EncoderInputs& inputs, at::IntArrayRef ids) {
  const std::pair<const char*, const at::Tensor&> masks[] = {
      {"attention_mask", inputs.attention_mask()}, {"computed_mask", inputs.computed_mask()}};
  for (const auto& [name, mask] : masks) {
    if (!mask.defined()) continue;
    TORCH_CHECK_TYPE(at::isIntegralType(mask.scalar_type(), /*includeBool=*/true), "[Encoder] ",
                     name, " must be bool or an integer type. Got ", mask.scalar_type());
    TORCH_CHECK_VALUE(mask.sizes() == ids, "[Encoder] ", name, " must be (B, L) = ", ids, ". Got ",
                      mask.sizes());
  }
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
  check_masks(inputs, embeds.sizes().slice(0, 2));
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
      {"computed_mask", inputs.computed_mask().defined()},
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
    return check_masks(inputs, input.sizes());
  }
  const std::pair<const char*, const at::Tensor&> of_text[] = {
      {"attention_mask", inputs.attention_mask()}, {"computed_mask", inputs.computed_mask()},
      {"token_type_ids", inputs.token_type_ids()}, {"position_ids", inputs.position_ids()},
      {"task_type_ids", inputs.task_type_ids()},   {"bbox", inputs.bbox()}};
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

}  // namespace posenc
