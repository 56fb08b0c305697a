#include "posenc/models/front_preset.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/nearest.h"
#include "models/front/model_table.h"

namespace posenc {
namespace {

constexpr const char* kFromHf = "front_options_from_hf";
constexpr int64_t kMostRows = int64_t{1} << 28, kMostWidth = int64_t{1} << 20;

const FrontModelRow* find_front_model(const std::string& model_type) {
  for (const FrontModelRow& row : front_model_table())
    if (row.model_type == model_type) return &row;
  return nullptr;
}

[[noreturn]] void refuse_front_model(const std::string& model_type) {
  std::vector<std::string> names;
  for (const FrontModelRow& row : front_model_table()) names.emplace_back(row.model_type);
  TORCH_CHECK_VALUE(false, "[", kFromHf,
                    "] `model_type` must be one whose front is known; the nearest are ",
                    detail::nearest_text(model_type, names), ". Got ",
                    model_type.empty() ? "no model_type" : model_type);
  std::abort();  // not reached
}

const FrontPresetRow& find_front_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const FrontPresetRow& row : front_preset_table()) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  TORCH_CHECK_VALUE(false, "[front_preset] there is no preset ", name, "; the nearest are ",
                    detail::nearest_text(name, names));
  std::abort();  // not reached
}

// The model of a configuration, or of the text model inside it; `config` is then replaced by the
// settings of that model. Null if it is not known.
const FrontModelRow* front_model_of(Settings& config) {
  const std::string name = config.text("model_type", "");
  const FrontModelRow* row = find_front_model(name);
  if (row == nullptr && config.has_part("text_config")) {
    config = config.part("text_config");
    row = find_front_model(config.text("model_type", name + "_text_model"));
  }
  return row;
}

// Null in a file means none; if the key is absent, the default applies.
std::optional<int64_t> padding_in(const Settings& config, const FrontModelRow& model,
                                  int64_t vocab) {
  const char* key = model.keys.pad;
  if (!config.object().contains(config.key(key))) return model.sizes.pad;
  if (!config.has(key)) return std::nullopt;
  return config.whole(key, 0, -vocab, vocab - 1);
}

EmbeddingFrontOptions sized_options(const Settings& config, const FrontModelRow& model) {
  const FrontSizes& sizes = model.sizes;
  const FrontKeys& keys = model.keys;
  const int64_t vocab = config.whole("vocab_size", sizes.vocab, 1, kMostRows);
  const int64_t width = config.whole("hidden_size", sizes.hidden, 1, kMostWidth);
  EmbeddingFrontOptions options(vocab, width);
  if (sizes.embedding != 0)
    options.embedding_dim(config.whole(keys.embedding, sizes.embedding, 1, kMostWidth));
  if (config.flag(keys.scale, sizes.scales)) options.scale(std::sqrt(static_cast<double>(width)));
  return options.position_rows(config.whole(keys.positions, sizes.positions, 1, kMostRows))
      .type_vocab_size(sizes.types)
      .layer_norm_eps(config.real(keys.eps, sizes.eps))
      .dropout(config.real(keys.dropout, sizes.dropout))
      .padding_idx(padding_in(config, model, vocab));
}

// Most classes need a row of token types, whether or not types are given: without any they fail.
void set_types(const Settings& config, const FrontModelRow& model, EmbeddingFrontOptions& options) {
  if (options.type_vocab_size() == 0) return;  // the front has none
  const int64_t least = model.sizes.types_optional ? 0 : 1;
  options.type_vocab_size(config.whole(model.keys.types, model.sizes.types, least, kMostRows));
}

EmbeddingFrontOptions front_of(const Settings& all, const FrontModelRow& model) {
  const Settings config = all.of(model.model_type);
  EmbeddingFrontOptions options = sized_options(config, model);
  (model.build != nullptr ? model.build : find_front_preset(model.preset).build)(config, options);
  set_types(config, model, options);
  return options;
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

EmbeddingFrontOptions front_options_from_hf(const std::string& config) {
  Settings settings = Settings::path_or_text(kFromHf, config);
  const std::string name = settings.text("model_type", "");
  const FrontModelRow* model = front_model_of(settings);
  if (model == nullptr) refuse_front_model(name);
  return front_of(settings, *model);
}

EmbeddingFrontOptions front_preset(const std::string& name, const std::string& config) {
  find_front_preset(name);  // throws
  Settings settings = Settings::path_or_text(kFromHf, config);
  const FrontModelRow* model = front_model_of(settings);
  TORCH_CHECK_VALUE(model == nullptr || model->preset == name, "[front_preset] the model type ",
                    model->model_type, " has the preset ", model->preset, ". Got ", name);
  if (model != nullptr) return front_of(settings, *model);
  const auto& table = front_model_table();
  return front_of(settings, *std::find_if(table.begin(), table.end(),
                                          [&](const auto& row) { return row.preset == name; }));
}

}  // namespace posenc
