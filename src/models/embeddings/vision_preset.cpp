#include "posenc/models/vision_embeddings_preset.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/nearest.h"
#include "models/embeddings/vision_table.h"

namespace posenc {
namespace {

constexpr const char* kVisionFromHf = "vision_embeddings_options_from_hf";
constexpr int64_t kMostPixels = 1 << 20;
constexpr int64_t kTimmImage = 224, kTimmPatch = 16, kTimmWidth = 768;

const VisionPresetRow& find_vision_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const VisionPresetRow& row : vision_preset_table()) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  TORCH_CHECK_VALUE(false, "[vision_embeddings_preset] there is no preset ", name,
                    "; the nearest are ", detail::nearest_text(name, names));
  std::abort();  // not reached
}

const VisionModelRow* first_model(const std::string& preset) {
  for (const VisionModelRow& row : vision_model_table())
    if (row.preset == preset) return &row;
  return nullptr;
}

// The model of a configuration, or of the vision model inside it; `config` is then replaced by the
// settings of that model. Null if it is not known.
const VisionModelRow* vision_model_of(Settings& config) {
  const std::string name = config.text("model_type", "");
  if (config.has_part("vision_config")) {
    const Settings inside = config.part("vision_config");
    const VisionModelRow* row = find_vision_model(inside.text("model_type", ""));
    if (row == nullptr)  // the class of some models ignores this name
      row = find_vision_model(hf::ConfigClass::of(name).part_type("vision_config"));
    if (row != nullptr) {
      config = inside;
      return row;
    }
  }
  return find_vision_model(name);
}

// Only timm's configurations lack these sizes, which they have by other names.
VisionEmbeddingsOptions built(const Settings& config, const VisionPresetRow& preset,
                              BuildVision then) {
  const VisionSides image = vision_sides(config, "image_size", kTimmImage);
  const VisionSides patch = vision_sides(config, "patch_size", kTimmPatch);
  VisionEmbeddingsOptions options(image.height, patch.height,
                                  config.whole("hidden_size", kTimmWidth, 1, kMostPixels));
  options.image_width(image.width).patch_width(patch.width);
  options.num_channels(config.whole("num_channels", 3, 1, kMostPixels));
  options.initializer_range(config.real("initializer_range", 0.02));
  options.resize(preset.resize);
  preset.build(config, options);
  if (then != nullptr) then(config, options);
  config.placing_errors([&] { options.validate(); });
  return options;
}

}  // namespace

VisionSides vision_sides(const Settings& config, const char* name, int64_t fallback) {
  const nlohmann::json& value = config.value(name);
  if (!value.is_array()) {
    const int64_t side = config.whole(name, fallback, 1, kMostPixels);
    return {side, side};
  }
  const auto is_side = [](const nlohmann::json& side) {
    return side.is_number_integer() && side >= 1 && side <= kMostPixels;
  };
  if (value.size() != 2 || !is_side(value[0]) || !is_side(value[1]))
    config.refuse(name, "must be a whole number or two, height and width");
  return {value[0].get<int64_t>(), value[1].get<int64_t>()};
}

std::vector<VisionEmbeddingsPreset> vision_embeddings_presets() {
  std::vector<VisionEmbeddingsPreset> presets;
  for (const VisionPresetRow& row : vision_preset_table())
    presets.push_back({row.name, row.source, row.formula, to_string(row.resize)});
  return presets;
}

std::vector<VisionEmbeddingsModel> vision_embeddings_models() {
  std::vector<VisionEmbeddingsModel> models;
  for (const VisionModelRow& row : vision_model_table())
    models.push_back({row.model_type, row.preset});
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a.model_type < b.model_type; });
  return models;
}

const VisionModelRow* find_vision_model(std::string_view model_type) {
  const auto& table = vision_model_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const VisionModelRow& row) {
    return row.model_type == model_type;
  });
  return found == table.end() ? nullptr : &*found;
}

VisionEmbeddingsOptions vision_embeddings_of(const Settings& config, const VisionModelRow& model) {
  return built(config, find_vision_preset(model.preset), model.build);
}

VisionEmbeddingsOptions vision_embeddings_options_from_hf(const std::string& config) {
  Settings settings = Settings::path_or_text(kVisionFromHf, config);
  const std::string model_type = settings.text("model_type", "");
  const VisionModelRow* model = vision_model_of(settings);
  if (model == nullptr) {
    std::vector<std::string> names;
    for (const VisionModelRow& row : vision_model_table()) names.emplace_back(row.model_type);
    TORCH_CHECK_VALUE(
        false, "[", kVisionFromHf,
        "] `model_type` must be one whose vision embeddings are known; the nearest are ",
        detail::nearest_text(model_type, names), ". Got ",
        model_type.empty() ? "no model_type" : model_type);
  }
  return vision_embeddings_of(settings.of(model->model_type), *model);
}

VisionEmbeddingsOptions vision_embeddings_preset(const std::string& name,
                                                 const std::string& config) {
  const VisionPresetRow& preset = find_vision_preset(name);
  Settings settings = Settings::path_or_text("vision_embeddings_preset", config);
  const VisionModelRow* model = vision_model_of(settings);
  if (model == nullptr) model = first_model(name);
  if (model == nullptr) return built(settings, preset, nullptr);  // timm's
  TORCH_CHECK_VALUE(name == model->preset, "[vision_embeddings_preset] a configuration of ",
                    model->model_type, " needs the preset ", model->preset, ". Got ", name);
  return vision_embeddings_of(settings.of(model->model_type), *model);
}

}  // namespace posenc
