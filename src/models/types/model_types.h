#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/types/decoder_structures.h"
#include "models/types/embeddings_structures.h"
#include "models/types/encoder_structures.h"
#include "models/types/heads_structures.h"
#include "models/types/rotary_structures.h"
#include "models/types/seq2seq_structures.h"

namespace posenc {

namespace hf {
struct ModelType;
}

/// The model types that have their names of tensors and their settings in one file of
/// models/families. Each is in kFamilies, in model_types.cpp.
using Family = std::span<const hf::ModelType>;

namespace families {

extern const Family bart_like, bert_like, clip_like, conformer, convbert, deberta, decoders, dpr,
    esm, fnet, gemma, gpt, gpt_neox, layer_norm_decoders, layoutlm, llama_like, mobilebert, olmo2,
    rotary_bert, sam, squeezebert, swin, t5_like, vit_like, whisper, xlnet, xmod;

}  // namespace families
}  // namespace posenc

namespace posenc::hf {

/// What posenc knows of a model type of transformers: its structure. The settings that it reads,
/// their defaults and their other names are those of its configuration class (ConfigClass).
struct ModelType {
  const char* type;             ///< as config.json has it
  const char* embeddings = "";  ///< the preset of its embeddings of token ids; empty: none
  const EmbeddingsStructure* tables = nullptr;  ///< in place of the preset's; null: the preset's
  const char* vision = "";                      ///< the preset of its embeddings of images
  BuildVision* patches = nullptr;               ///< the same for images
  const char* rotary = "";                      ///< the preset of its rotary embedding
  RotaryStructure rope = {};                    ///< what is unusual in how that is configured
  const EncoderStructure* layers = nullptr;     ///< of an encoder that posenc can run
  const HeadStructures* heads = nullptr;        ///< of models with it and a head
  const DecoderStructure* decoder = nullptr;    ///< of a decoder-only language model with it
  const Seq2SeqStructure* seq2seq = nullptr;    ///< of an encoder-decoder that posenc can run
  /// The prefix of all keys in files of models with a head, such as `bert.`; files without it are
  /// read too.
  const char* prefix = "";
  const char* old_prefix = "";  ///< the same in files of older releases, or of the model's own code
  /// For a model of several encoders, the part of config.json with the one that is loaded.
  const char* part = "";
  bool has_pooler = true;  ///< whether its class has the pooler of its layers by default
  const char* lacks = "";  ///< what posenc lacks to run a known model
  /// The row that is read in place of this one for some configurations; null: this one.
  const ModelType* (*variant)(const Settings& config) = nullptr;
  const char* model_class = "";  ///< without a head, if it is not that of `type` in transformers
};

/// All of them, by name.
std::span<const ModelType> model_types();
/// The row of `type`; null if it is not known.
const ModelType* find_model_type(std::string_view type);

/// A kind of presets, such as `&ModelType::rotary`.
using PresetKind = const char* ModelType::*;
/// The same if it has a preset of this kind.
const ModelType* find_model_type(std::string_view type, PresetKind kind);

/// The model types with a preset of a kind: a RotaryModel of each, for example.
template <typename Model>
std::vector<Model> models_with(PresetKind kind) {
  std::vector<Model> models;
  for (const ModelType& row : model_types()) {
    if (*(row.*kind) != '\0') models.push_back({row.type, row.*kind});
  }
  return models;
}

/// Throws c10::ValueError: `where`, `rule`, the nearest of the `known` model types, and `type`.
[[noreturn]] void refuse_model_type(const std::string& where, const char* rule,
                                    std::string_view type, const std::vector<std::string>& known);
/// The same for one without a preset of this kind.
[[noreturn]] void refuse_model_type(const std::string& where, const char* rule,
                                    std::string_view type, PresetKind kind);

}  // namespace posenc::hf
