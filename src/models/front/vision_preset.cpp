#include "posenc/models/vision_front_preset.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/nearest.h"
#include "models/front/vision_table.h"

namespace posenc {
namespace {

constexpr const char* kVisionFromHf = "vision_front_options_from_hf";
constexpr int64_t kMostPixels = 1 << 20;

const VisionModelRow* find_vision_model(const std::string& model_type) {
  const auto& table = vision_model_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const VisionModelRow& row) {
    return row.model_type == model_type;
  });
  return found == table.end() ? nullptr : &*found;
}

const VisionPresetRow& find_vision_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const VisionPresetRow& row : vision_preset_table()) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  TORCH_CHECK_VALUE(false, "[vision_front_preset] there is no preset ", name, "; the nearest are ",
                    detail::nearest_text(name, names));
  std::abort();  // not reached
}

// The vision model of a composite model. Its own model type may be missing.
const VisionModelRow* inner_vision_model(const std::string& inner, std::string outer) {
  if (const VisionModelRow* row = find_vision_model(inner)) return row;
  std::replace(outer.begin(), outer.end(), '-', '_');
  for (const char* end : {"_vision_model", "_vision"})
    if (const VisionModelRow* row = find_vision_model(outer + end)) return row;
  return nullptr;
}

// The model of a configuration, or of the vision model inside it; `config` is then replaced by the
// settings of that model. Null if it is not known.
const VisionModelRow* vision_model_of(Settings& config) {
  const std::string name = config.text("model_type", "");
  if (config.has_part("vision_config")) {
    const Settings inside = config.part("vision_config");
    if (const VisionModelRow* row = inner_vision_model(inside.text("model_type", ""), name)) {
      config = inside;
      return row;
    }
  }
  if (const VisionModelRow* row = find_vision_model(name)) return row;
  return name.empty() ? nullptr : inner_vision_model("", name);
}

VisionFrontOptions built(const Settings& config, const VisionPresetRow& preset,
                         const VisionDefaults& defaults, BuildVision then = nullptr) {
  const VisionSides image = vision_sides(config, "image_size", defaults.image);
  const VisionSides patch = vision_sides(config, "patch_size", defaults.patch);
  VisionFrontOptions options(image.height, patch.height,
                             config.whole("hidden_size", defaults.hidden, 1, kMostPixels));
  options.image_width(image.width).patch_width(patch.width);
  options.num_channels(config.whole("num_channels", 3, 1, kMostPixels));
  options.initializer_range(config.real("initializer_range", 0.02));
  options.resize(preset.resize);
  preset.build(config, defaults, options);
  if (then != nullptr) then(config, defaults, options);
  try {
    options.validate();
  } catch (const c10::ValueError& error) {
    TORCH_CHECK_VALUE(false, config.where(), error.what_without_backtrace());
  }
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

std::vector<VisionFrontPreset> vision_front_presets() {
  std::vector<VisionFrontPreset> presets;
  for (const VisionPresetRow& row : vision_preset_table())
    presets.push_back({row.name, row.source, row.formula, to_string(row.resize)});
  return presets;
}

std::vector<VisionFrontModel> vision_front_models() {
  std::vector<VisionFrontModel> models;
  for (const VisionModelRow& row : vision_model_table())
    models.push_back({row.model_type, row.preset});
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a.model_type < b.model_type; });
  return models;
}

VisionFrontOptions vision_front_options_from_hf(const std::string& config) {
  Settings settings = Settings::path_or_text(kVisionFromHf, config);
  const std::string model_type = settings.text("model_type", "");
  const VisionModelRow* model = vision_model_of(settings);
  if (model == nullptr) {
    std::vector<std::string> names;
    for (const VisionModelRow& row : vision_model_table()) names.emplace_back(row.model_type);
    TORCH_CHECK_VALUE(false, "[", kVisionFromHf,
                      "] `model_type` must be one whose vision front is known; the nearest are ",
                      detail::nearest_text(model_type, names), ". Got ",
                      model_type.empty() ? "no model_type" : model_type);
  }
  return built(settings.of(model->model_type), find_vision_preset(model->preset), model->defaults,
               model->build);
}

VisionFrontOptions vision_front_preset(const std::string& name, const std::string& config) {
  const VisionPresetRow& preset = find_vision_preset(name);
  Settings settings = Settings::path_or_text("vision_front_preset", config);
  const VisionModelRow* model = vision_model_of(settings);
  if (model == nullptr) return built(settings, preset, preset.defaults);
  TORCH_CHECK_VALUE(name == model->preset, "[vision_front_preset] a configuration of ",
                    model->model_type, " needs the preset ", model->preset, ". Got ", name);
  return built(settings.of(model->model_type), preset, model->defaults, model->build);
}

}  // namespace posenc
