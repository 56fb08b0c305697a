#include "posenc/models/encoder_embeddings_preset.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/nearest.h"
#include "models/embeddings/model_table.h"
#include "models/hf/setting_names.h"

namespace posenc {
namespace {

constexpr const char* kFromHf = "encoder_embeddings_options_from_hf";
constexpr int64_t kMostRows = int64_t{1} << 28, kMostWidth = int64_t{1} << 20;
constexpr double kTorchEpsilon = 1e-5;  // the default of a norm

[[noreturn]] void refuse_embeddings_model(const std::string& model_type) {
  std::vector<std::string> names;
  for (const EncoderEmbeddingsModelRow& row : encoder_embeddings_model_table())
    names.emplace_back(row.model_type);
  TORCH_CHECK_VALUE(false, "[", kFromHf,
                    "] `model_type` must be one whose embeddings are known; the nearest are ",
                    detail::nearest_text(model_type, names), ". Got ",
                    model_type.empty() ? "no model_type" : model_type);
  std::abort();  // not reached
}

const EncoderEmbeddingsPresetRow& find_embeddings_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const EncoderEmbeddingsPresetRow& row : encoder_embeddings_preset_table()) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  TORCH_CHECK_VALUE(false, "[encoder_embeddings_preset] there is no preset ", name,
                    "; the nearest are ", detail::nearest_text(name, names));
  std::abort();  // not reached
}

// The model of a configuration, or of the text model inside it; `config` is then replaced by the
// settings of that model. Null if it is not known.
const EncoderEmbeddingsModelRow* embeddings_model_of(Settings& config) {
  const std::string name = config.text("model_type", "");
  const EncoderEmbeddingsModelRow* row = find_embeddings_model(name);
  if (row == nullptr && config.has_part("text_config")) {
    config = config.part("text_config");
    row = find_embeddings_model(config.text("model_type", ""));
  }
  return row;
}

EncoderEmbeddingsOptions sized_options(const Settings& config) {
  const int64_t width = config.whole("hidden_size", 1, kMostWidth);
  EncoderEmbeddingsOptions options(config.whole("vocab_size", 1, kMostRows), width);
  if (config.name_of(hf::kTableWidth))
    options.embedding_dim(config.whole(hf::kTableWidth, width, 1, kMostWidth));
  if (config.flag(hf::kScale, false)) options.scale(std::sqrt(static_cast<double>(width)));
  return options.position_rows(config.whole(hf::kPositions, options.position_rows(), 1, kMostRows))
      .type_vocab_size(1)
      .layer_norm_eps(config.not_negative(hf::kEpsilon, kTorchEpsilon))
      .dropout(config.probability(hf::kDropout, 0.0));
}

// Most classes need a row of token types, whether or not types are given: without any they fail.
void set_types(const Settings& config, EncoderEmbeddingsOptions& options) {
  if (options.type_vocab_size() == 0) return;  // the embeddings have none
  options.type_vocab_size(config.whole("type_vocab_size", 1, kMostRows));
}

}  // namespace

std::vector<EncoderEmbeddingsPreset> encoder_embeddings_presets() {
  std::vector<EncoderEmbeddingsPreset> presets;
  for (const EncoderEmbeddingsPresetRow& row : encoder_embeddings_preset_table())
    presets.push_back({row.name, row.source, row.formula});
  return presets;
}

std::vector<EncoderEmbeddingsModel> encoder_embeddings_models() {
  std::vector<EncoderEmbeddingsModel> models;
  for (const EncoderEmbeddingsModelRow& row : encoder_embeddings_model_table())
    models.push_back({row.model_type, row.preset});
  std::sort(models.begin(), models.end(),
            [](const EncoderEmbeddingsModel& a, const EncoderEmbeddingsModel& b) {
              return a.model_type < b.model_type;
            });
  return models;
}

const EncoderEmbeddingsModelRow* find_embeddings_model(std::string_view model_type) {
  for (const EncoderEmbeddingsModelRow& row : encoder_embeddings_model_table())
    if (row.model_type == model_type) return &row;
  return nullptr;
}

EncoderEmbeddingsOptions embeddings_of(const Settings& config,
                                       const EncoderEmbeddingsModelRow& model) {
  EncoderEmbeddingsOptions options = sized_options(config);
  (model.build != nullptr ? model.build : find_embeddings_preset(model.preset).build)(config,
                                                                                      options);
  set_types(config, options);
  return options;
}

EncoderEmbeddingsOptions encoder_embeddings_options_from_hf(const std::string& config) {
  Settings settings = Settings::path_or_text(kFromHf, config);
  const std::string name = settings.text("model_type", "");
  const EncoderEmbeddingsModelRow* model = embeddings_model_of(settings);
  if (model == nullptr) refuse_embeddings_model(name);
  return embeddings_of(settings.of(model->model_type), *model);
}

EncoderEmbeddingsOptions encoder_embeddings_preset(const std::string& name,
                                                   const std::string& config) {
  find_embeddings_preset(name);  // throws
  Settings settings = Settings::path_or_text(kFromHf, config);
  const EncoderEmbeddingsModelRow* model = embeddings_model_of(settings);
  TORCH_CHECK_VALUE(model == nullptr || model->preset == name,
                    "[encoder_embeddings_preset] the model type ", model->model_type,
                    " has the preset ", model->preset, ". Got ", name);
  if (model == nullptr) {
    const auto& table = encoder_embeddings_model_table();
    model = &*std::find_if(table.begin(), table.end(),
                           [&](const auto& row) { return row.preset == name; });
  }
  return embeddings_of(settings.of(model->model_type), *model);
}

}  // namespace posenc
