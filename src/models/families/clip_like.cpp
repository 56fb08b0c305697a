// CLIP, SigLIP and Chinese CLIP: pairs of an encoder of texts and one of images.

#include <ATen/core/grad_mode.h>

#include "models/families/family.h"

namespace posenc::families {
namespace {

// from_pretrained() zeroes the row of padding that a file has.
void zero_padding_row(const EncoderConfig&, const io::TensorSource&, const std::string&,
                      EncoderImpl& model) {
  const auto& row = model.embeddings->tokens->options.padding_idx();
  const torch::NoGradGuard no_grad;
  if (row) model.embeddings->tokens->weight.select(0, *row).zero_();
}

// clang-format off
const EncoderLayerKeys kClipKeys[] = {{
    .layer = "encoder.layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.out_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "layer_norm1", .norm2 = "layer_norm2"}};

constexpr EncoderStructure kClipTextLayers = {.keys = kClipKeys, .norm_first = true,
    .last_norm = "final_layer_norm", .raw_hidden_states = true, .is_causal = true,
    .pooling = Pooling::EndToken};
constexpr EncoderStructure kSiglipTextLayers = {.keys = kClipKeys, .norm_first = true,
    .last_norm = "final_layer_norm", .raw_hidden_states = true,
    .pooling = Pooling::LinearOfLast, .pooler = "head"};
constexpr EncoderStructure kClipVisionLayers = {.keys = kClipKeys, .patch_norm = "pre_layrnorm",
    .norm_first = true, .raw_hidden_states = true, .pooling = Pooling::NormOfFirst,
    .pooler = "post_layernorm"};
constexpr EncoderStructure kSiglipVisionLayers = {.keys = kClipKeys, .norm_first = true,
    .last_norm = "post_layernorm", .raw_hidden_states = true, .pooling = Pooling::Attention,
    .pooler = "head"};
constexpr EncoderStructure kChineseClipTextLayers = {.keys = layers::kBertKeys,
    .pooling = Pooling::TanhOfFirst, .load = zero_padding_row};

constexpr ModelType kClipLikeTypes[] = {
    {.type = "chinese_clip", .part = "text_config"},
    {.type = "chinese_clip_text_model", .embeddings = "bert",
     .layers = &kChineseClipTextLayers, .prefix = "text_model."},
    {.type = "chinese_clip_vision_model", .vision = "clip",
     .layers = &kClipVisionLayers, .prefix = "vision_model."},
    {.type = "clip", .part = "text_config"},
    {.type = "clip_text_model", .embeddings = "clip", .layers = &kClipTextLayers,
     .prefix = "text_model."},
    {.type = "clip_vision_model", .vision = "clip",
     .layers = &kClipVisionLayers, .heads = &heads::kVisionMean, .prefix = "vision_model."},
    {.type = "clipseg", .part = "text_config"},
    {.type = "clipseg_text_model", .embeddings = "clip", .layers = &kClipTextLayers,
     .prefix = "text_model."},
    {.type = "clipseg_vision_model", .vision = "clip",
     .layers = &kClipVisionLayers, .prefix = "vision_model."},
    {.type = "siglip", .part = "text_config"},
    {.type = "siglip2", .part = "text_config"},
    {.type = "siglip2_text_model", .embeddings = "clip", .layers = &kSiglipTextLayers,
     .prefix = "text_model."},
    {.type = "siglip_text_model", .embeddings = "clip", .layers = &kSiglipTextLayers,
     .prefix = "text_model."},
    {.type = "siglip_vision_model", .vision = "siglip",
     .layers = &kSiglipVisionLayers, .heads = &heads::kVisionMean, .prefix = "vision_model."},
};
// clang-format on

}  // namespace

constinit const Family clip_like = kClipLikeTypes;

}  // namespace posenc::families
