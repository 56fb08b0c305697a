#pragma once

#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/positions/nn/vision_embeddings_options.h"

namespace posenc POSENC_EXPORT {

/// The vision embeddings of a family of models.
struct VisionEmbeddingsPreset {
  std::string name;     ///< its name
  std::string source;   ///< the class of transformers or timm
  std::string formula;  ///< what it computes
  std::string resize;   ///< the name of the rule by which its positions are resized
};

/// All presets in a fixed order.
std::vector<VisionEmbeddingsPreset> vision_embeddings_presets();

/// A `model_type` of Hugging Face's transformers whose vision embeddings are known.
struct VisionEmbeddingsModel {
  std::string model_type;  ///< as config.json has it
  std::string preset;      ///< the preset that it uses
};

/// All of them, by name.
std::vector<VisionEmbeddingsModel> vision_embeddings_models();

/// The vision embeddings of a Hugging Face model, from its configuration: the path of a
/// config.json, or its text, which begins with a brace. Settings that are absent have the defaults
/// that transformers has for the model type. For a composite model, such as CLIP, the vision model
/// is used.
///
/// Positions are resized for images of another size even where transformers does so only on request
/// (`interpolate_pos_encoding=True`); for its default, set `.resize(PositionResize::Refuse)`.
///
/// The mask token of ViT, DeiT and I-JEPA, which only their models for masked images have, is
/// `.mask_token(true)`. The norm after the embeddings of CLIP's models is `.norm(true)`: its keys
/// are outside `embeddings.` in their files.
///
/// Errors: c10::ValueError, naming the setting, for an unknown model type (with the nearest names)
/// and for settings of the wrong kind or outside their range; WeightsError for a file that cannot
/// be read.
VisionEmbeddingsOptions vision_embeddings_options_from_hf(const std::string& config);

/// The same for the preset `name`, with a configuration that needs no `model_type`.
///
/// The preset `timm_vit` reads the arguments of timm's `VisionTransformer` (`img_size`,
/// `patch_size`, `in_chans`, `embed_dim`, `class_token`, `reg_tokens`, `no_embed_class`,
/// `pos_embed`, `pos_drop_rate`, `pre_norm`), also from `model_args` in a config.json of timm.
///
/// Errors: those of vision_embeddings_options_from_hf(); c10::ValueError for an unknown preset,
/// with the nearest names, and for a model type with another preset.
VisionEmbeddingsOptions vision_embeddings_preset(const std::string& name,
                                                 const std::string& config);

}  // namespace posenc
