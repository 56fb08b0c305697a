#include "posenc/models/front_preset.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

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
  if (const FrontModelRow* row = find_front_model(name)) return row;
  if (!config.has("text_config")) return nullptr;
  config = config.inside("text_config");
  return find_front_model(config.text("model_type", name + "_text_model"));
}

// The first name that has a value, from `names` separated by spaces; without any, the first name.
std::string spelling(const Settings& config, const char* names) {
  std::istringstream words(names);
  std::string first, name;
  while (words >> name) {
    if (config.has(name.c_str())) return name;
    if (first.empty()) first = name;
  }
  return first;
}

int64_t size_in(const Settings& config, const char* names, int64_t fallback, int64_t least,
                int64_t most) {
  return config.whole(spelling(config, names).c_str(), fallback, least, most);
}

double real_in(const Settings& config, const char* names, double fallback) {
  return config.real(spelling(config, names).c_str(), fallback);
}

// Null in a file means none; if the key is absent, the default applies.
std::optional<int64_t> padding_in(const Settings& config, const FrontModelRow& model,
                                  int64_t vocab) {
  const std::string key = model.keys.pad;
  if (!config.object().contains(key)) return model.sizes.pad;
  if (!config.has(key.c_str())) return std::nullopt;
  return config.whole(key.c_str(), 0, -vocab, vocab - 1);
}

EmbeddingFrontOptions sized_options(const Settings& config, const FrontModelRow& model) {
  const FrontSizes& sizes = model.sizes;
  const FrontKeys& keys = model.keys;
  const int64_t vocab = size_in(config, "vocab_size", sizes.vocab, 1, kMostRows);
  const int64_t width = size_in(config, keys.hidden, sizes.hidden, 1, kMostWidth);
  EmbeddingFrontOptions options(vocab, width);
  if (sizes.embedding != 0)
    options.embedding_dim(size_in(config, keys.embedding, sizes.embedding, 1, kMostWidth));
  if (config.flag(keys.scale, sizes.scales)) options.scale(std::sqrt(static_cast<double>(width)));
  return options.position_rows(size_in(config, keys.positions, sizes.positions, 1, kMostRows))
      .type_vocab_size(size_in(config, keys.types, sizes.types, 0, kMostRows))
      .layer_norm_eps(real_in(config, keys.eps, sizes.eps))
      .dropout(real_in(config, keys.dropout, sizes.dropout))
      .padding_idx(padding_in(config, model, vocab));
}

EmbeddingFrontOptions front_of(const Settings& config, const FrontModelRow& model) {
  EmbeddingFrontOptions options = sized_options(config, model);
  (model.build != nullptr ? model.build : find_front_preset(model.preset).build)(config, options);
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
