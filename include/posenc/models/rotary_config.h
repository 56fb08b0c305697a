#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posenc/export.h"
#include "posenc/positions/rotary/rotary.h"
#include "posenc/positions/sinusoid/preset.h"

namespace posenc POSENC_EXPORT {

/// A `model_type` of Hugging Face's transformers whose rotary embedding is known.
struct RotaryModel {
  std::string model_type;  ///< as config.json has it
  std::string preset;      ///< the preset that it uses
};

/// All of them, by name.
std::vector<RotaryModel> rotary_models();

/// The rotary embedding of a Hugging Face model, from its configuration: the path of a config.json,
/// or its text, which begins with a brace.
///
/// `layer_type`: the kind of layer, such as `sliding_attention`, for models with a rotary embedding
/// per kind; for Molmo 2 `scaled` (the default) or `unscaled`, the layers outside
/// `rope_scaling_layers`. For a composite model, the text model is used.
///
/// GPT-J and CodeGen look up a table of `n_positions` rows and fail beyond it; the returned options
/// have no such limit. The learned `alpha` of Mistral Large 4 is not part of the options:
/// RotaryEmbeddingOptions::learned_scale() has it.
///
/// Errors: c10::ValueError, naming the key, for an unknown model type or type of scaling (with the
/// nearest names), a parameter that is missing or of the wrong kind, and a
/// layer type that the model does not have; WeightsError for a file that cannot be read.
RotaryOptions rotary_options_from_hf(const std::string& config, const std::string& layer_type = "");

/// A preset with the parameters that a config.json would have, by their names there: `head_dim`,
/// `rope_theta`, `rope_type`, `factor`, `partial_rotary_factor`, `mrope_section` and so on. A list
/// is written as numbers separated by commas.
///
/// Errors: those of rotary_options_from_hf(); c10::ValueError for a parameter that is not known.
RotaryOptions rotary_options_from_params(std::string_view preset, const PresetParams& params);

}  // namespace posenc
