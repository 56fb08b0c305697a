#pragma once

#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/positions/nn/encoder_embeddings_options.h"

namespace posenc POSENC_EXPORT {

/// The embeddings of a family of models.
struct EncoderEmbeddingsPreset {
  std::string name;     ///< its name
  std::string source;   ///< the class of transformers
  std::string formula;  ///< what it computes
};

/// All presets in a fixed order.
std::vector<EncoderEmbeddingsPreset> encoder_embeddings_presets();

/// A `model_type` of Hugging Face's transformers whose embeddings are known.
struct EncoderEmbeddingsModel {
  std::string model_type;  ///< as config.json has it
  std::string preset;      ///< the preset that it uses
};

/// All of them, by name.
std::vector<EncoderEmbeddingsModel> encoder_embeddings_models();

/// The embeddings of a Hugging Face model, from its configuration: the path of a config.json, or
/// its text, which begins with a brace. Settings that are absent have the defaults that
/// transformers has for the model type. For a composite model, such as CLIP, the text model is
/// used; for an encoder with a decoder, such as BART, the encoder.
///
/// The names of the modules are the last parts of their keys in transformers' files.
///
/// Errors: c10::ValueError, naming the setting, for an unknown model type (with the nearest names)
/// and for settings of the wrong kind or outside their range; WeightsError for a file that cannot
/// be read.
EncoderEmbeddingsOptions encoder_embeddings_options_from_hf(const std::string& config);

/// The same for the preset `name`, with a configuration that needs no `model_type`: settings are
/// then read, and their defaults chosen, as for the preset's first model type.
///
/// Errors: those of encoder_embeddings_options_from_hf(); c10::ValueError for an unknown preset,
/// with the nearest names, and for a model type with another preset.
EncoderEmbeddingsOptions encoder_embeddings_preset(const std::string& name,
                                                   const std::string& config);

}  // namespace posenc
