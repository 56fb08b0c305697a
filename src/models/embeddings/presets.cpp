#include "models/embeddings/presets.h"

#include <c10/util/Exception.h>

#include <cstdlib>

#include "core/nearest.h"
#include "posenc/models/encoder_embeddings_preset.h"
#include "posenc/models/vision_embeddings_preset.h"

namespace posenc {
namespace {

using hf::ModelType;

constexpr const char* kFromHf = "encoder_embeddings_options_from_hf";
constexpr const char* kVisionFromHf = "vision_embeddings_options_from_hf";

template <typename Row>
const Row& find_preset(std::span<const Row> rows, const std::string& name, const char* caller) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  TORCH_CHECK_VALUE(false, "[", caller, "] there is no preset ", name, "; the nearest are ",
                    detail::nearest_text(name, names));
  std::abort();  // not reached
}

const ModelType* model_of(const Settings& config, hf::PresetKind kind) {
  return hf::find_model_type(config.text("model_type", ""), kind);
}

// The model of a configuration, or of the text model inside it; `config` is then replaced by the
// settings of that model. Null if it is not known.
const ModelType* embeddings_model_of(Settings& config) {
  const ModelType* model = model_of(config, &ModelType::embeddings);
  if (model != nullptr || !config.has_part("text_config")) return model;
  config = config.part("text_config");
  return model_of(config, &ModelType::embeddings);
}

// The same for the vision model inside it.
const ModelType* vision_model_of(Settings& config) {
  const ModelType* whole = model_of(config, &ModelType::vision);
  if (!config.has_part("vision_config")) return whole;
  const Settings inside = config.part("vision_config");
  const ModelType* model = model_of(inside, &ModelType::vision);
  if (model == nullptr) {  // the class of some models ignores this name
    const auto& own = hf::ConfigClass::of(config.text("model_type", ""));
    model = hf::find_model_type(own.part_type("vision_config"), &ModelType::vision);
  }
  if (model == nullptr) return whole;
  config = inside;
  return model;
}

}  // namespace

const EncoderEmbeddingsPresetRow& encoder_embeddings_preset_row(const std::string& name) {
  return find_preset(encoder_embeddings_preset_rows(), name, "encoder_embeddings_preset");
}

const VisionPresetRow& vision_preset_row(const std::string& name) {
  return find_preset(vision_preset_rows(), name, "vision_embeddings_preset");
}

std::vector<EncoderEmbeddingsPreset> encoder_embeddings_presets() {
  std::vector<EncoderEmbeddingsPreset> presets;
  for (const EncoderEmbeddingsPresetRow& row : encoder_embeddings_preset_rows())
    presets.push_back({row.name, row.source, row.formula});
  return presets;
}

std::vector<VisionEmbeddingsPreset> vision_embeddings_presets() {
  std::vector<VisionEmbeddingsPreset> presets;
  for (const VisionPresetRow& row : vision_preset_rows())
    presets.push_back({row.name, row.source, row.formula, to_string(row.resize)});
  return presets;
}

std::vector<EncoderEmbeddingsModel> encoder_embeddings_models() {
  return hf::models_with<EncoderEmbeddingsModel>(&ModelType::embeddings);
}

std::vector<VisionEmbeddingsModel> vision_embeddings_models() {
  return hf::models_with<VisionEmbeddingsModel>(&ModelType::vision);
}

EncoderEmbeddingsOptions encoder_embeddings_options_from_hf(const std::string& config) {
  Settings settings = Settings::path_or_text(kFromHf, config);
  const std::string name = settings.text("model_type", "");
  const ModelType* model = embeddings_model_of(settings);
  if (model == nullptr)
    hf::refuse_model_type("[encoder_embeddings_options_from_hf] ",
                          "`model_type` must be one whose embeddings are known", name,
                          &ModelType::embeddings);
  return embeddings_of(settings.of(model->type), *model);
}

VisionEmbeddingsOptions vision_embeddings_options_from_hf(const std::string& config) {
  Settings settings = Settings::path_or_text(kVisionFromHf, config);
  const std::string name = settings.text("model_type", "");
  const ModelType* model = vision_model_of(settings);
  if (model == nullptr)
    hf::refuse_model_type("[vision_embeddings_options_from_hf] ",
                          "`model_type` must be one whose vision embeddings are known", name,
                          &ModelType::vision);
  return vision_embeddings_of(settings.of(model->type), *model);
}

EncoderEmbeddingsOptions encoder_embeddings_preset(const std::string& name,
                                                   const std::string& config) {
  const auto& preset = encoder_embeddings_preset_row(name);
  Settings settings = Settings::path_or_text(kFromHf, config);
  const ModelType* model = embeddings_model_of(settings);
  if (model == nullptr) model = hf::find_model_type(preset.model_type);
  TORCH_CHECK_VALUE(model->embeddings == name, "[encoder_embeddings_preset] the model type ",
                    model->type, " has the preset ", model->embeddings, ". Got ", name);
  return embeddings_of(settings.of(model->type), *model);
}

VisionEmbeddingsOptions vision_embeddings_preset(const std::string& name,
                                                 const std::string& config) {
  const auto& preset = vision_preset_row(name);
  Settings settings = Settings::path_or_text("vision_embeddings_preset", config);
  const ModelType* model = vision_model_of(settings);
  if (model == nullptr) model = hf::find_model_type(preset.model_type);
  if (model == nullptr) return vision_embeddings_of(settings, preset);  // timm's
  TORCH_CHECK_VALUE(model->vision == name, "[vision_embeddings_preset] a configuration of ",
                    model->type, " needs the preset ", model->vision, ". Got ", name);
  return vision_embeddings_of(settings.of(model->type), *model);
}

}  // namespace posenc
