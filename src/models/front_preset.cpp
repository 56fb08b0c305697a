#include "posenc/models/front_preset.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/named.h"
#include "models/front/model_table.h"
#include "models/hf/setting_names.h"

namespace posenc {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 28, kMostWidth = int64_t{1} << 20;
constexpr double kTorchEpsilon = 1e-5;  // the default of a norm

const FrontPresetRow& find_front_preset(const std::string& name) {
  return detail::find_named(front_preset_table(), name, "[front_preset] ",
                            "there is no preset {}; the nearest are {}");
}

// The model of a configuration, or of the text model inside it; `config` is then replaced by the
// settings of that model. Null if it is not known.
const FrontModelRow* front_model_of(Settings& config) {
  const std::string name = config.text("model_type", "");
  const FrontModelRow* row = find_front_model(name);
  if (row == nullptr && config.has_part("text_config")) {
    config = config.part("text_config");
    row = find_front_model(config.text("model_type", ""));
  }
  return row;
}

EmbeddingFrontOptions sized_options(const Settings& config) {
  const int64_t width = config.whole("hidden_size", 1, kMostWidth);
  EmbeddingFrontOptions options(config.whole("vocab_size", 1, kMostRows), width);
  if (config.name_of(hf::kTableWidth))
    options.embedding_dim(config.whole(hf::kTableWidth, width, 1, kMostWidth));
  if (config.flag(hf::kScale, false)) options.scale(std::sqrt(static_cast<double>(width)));
  return options.position_rows(config.whole(hf::kPositions, options.position_rows(), 1, kMostRows))
      .type_vocab_size(1)
      .layer_norm_eps(config.not_negative(hf::kEpsilon, kTorchEpsilon))
      .dropout(config.probability(hf::kDropout, 0.0));
}

// Most classes need a row of token types, whether or not types are given: without any they fail.
void set_types(const Settings& config, EmbeddingFrontOptions& options) {
  if (options.type_vocab_size() == 0) return;  // the front has none
  options.type_vocab_size(config.whole("type_vocab_size", 1, kMostRows));
}

}  // namespace

std::vector<FrontPreset> front_presets() {
  std::vector<FrontPreset> presets;
  for (const FrontPresetRow& row : front_preset_table())
    presets.push_back({row.name, row.source, row.formula});
  return presets;
}

std::vector<FrontModel> front_models() {
  std::vector<FrontModel> models;
  for (const FrontModelRow& row : front_model_table())
    models.push_back({row.model_type, row.preset});
  std::sort(models.begin(), models.end(),
            [](const FrontModel& a, const FrontModel& b) { return a.model_type < b.model_type; });
  return models;
}

const FrontModelRow* find_front_model(std::string_view model_type) {
  return detail::find_named(front_model_table(), model_type);
}

EmbeddingFrontOptions front_of(const Settings& config, const FrontModelRow& model) {
  EmbeddingFrontOptions options = sized_options(config);
  (model.build != nullptr ? model.build : find_front_preset(model.preset).build)(config, options);
  set_types(config, options);
  return options;
}

EmbeddingFrontOptions front_options_from_hf(const std::string& config) {
  Settings settings = Settings::path_or_text("front_options_from_hf", config);
  const std::string name = settings.text("model_type", "");
  const FrontModelRow* model = front_model_of(settings);
  if (model == nullptr) {
    detail::refuse_name(
        front_model_table(), name, "[front_options_from_hf] ",
        "`model_type` must be one whose front is known; the nearest are {1}. Got {0}");
  }
  return front_of(settings.of(model->model_type), *model);
}

EmbeddingFrontOptions front_preset(const std::string& name, const std::string& config) {
  find_front_preset(name);  // throws
  Settings settings = Settings::path_or_text("front_options_from_hf", config);
  const FrontModelRow* model = front_model_of(settings);
  TORCH_CHECK_VALUE(model == nullptr || model->preset == name, "[front_preset] the model type ",
                    model->model_type, " has the preset ", model->preset, ". Got ", name);
  if (model == nullptr) {
    const auto& table = front_model_table();
    model = &*std::find_if(table.begin(), table.end(),
                           [&](const auto& row) { return row.preset == name; });
  }
  return front_of(settings.of(model->model_type), *model);
}

}  // namespace posenc
