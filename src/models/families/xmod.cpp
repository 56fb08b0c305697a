// X-MOD: RoBERTa with an adapter in each layer, of which that of one language is loaded.

#include <algorithm>

#include "models/families/family.h"

namespace posenc::families {
namespace {

std::string language_in(const Settings& config) {
  constexpr const char *kLanguage = "default_language", *kLanguages = "languages";
  const nlohmann::json& all = config.value(kLanguages);
  if (!all.is_array()) config.refuse(kLanguages, "must be a list of languages");
  const std::string language = config.text_if(kLanguage).value_or("");
  if (std::find(all.begin(), all.end(), language) == all.end()) {
    config.refuse(kLanguage, "must be one of languages " + all.dump() +
                                 ": the adapters of one language are loaded");
  }
  return language;
}

void read_xmod(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  constexpr const char* kFactor = "adapter_reduction_factor";
  const int64_t factor = config.integer(kFactor, 1, INT32_MAX);
  if (factor > layer.d_model()) {
    config.refuse(kFactor, "must be at most " + config.key("hidden_size") + " " +
                               std::to_string(layer.d_model()));
  }
  language_in(config);
  const bool is_first = config.flag("pre_norm");
  layer.norm_first(is_first).adapter(AdapterOptions(layer.d_model() / factor)
                                         .norm(config.flag("adapter_layer_norm") ? AdapterNorm::Own
                                               : config.flag("adapter_reuse_layer_norm")
                                                   ? AdapterNorm::Shared
                                                   : AdapterNorm::None)
                                         .norm_before_residual(config.flag("ln_before_adapter")));
  options.encoder().norm(is_first);
}

void name_adapter(const LayerNames& names) {
  const std::string all = names.from + "output.adapter_modules.";
  const std::string own = all + language_in(names.config.settings) + ".";
  names.map.emplace_back(own + "dense1.*", names.to + "adapter1.*");
  names.map.emplace_back(own + "dense2.*", names.to + "adapter2.*");
  names.map.emplace_back(all + "*", "");  // of other languages
  const auto& adapter = names.config.options.encoder().layer().adapter();
  const std::string norm = names.from + "output.adapter_layer_norm";
  if (adapter->norm() == AdapterNorm::Own) {
    add_norm(names.map, norm, names.to + "adapter_norm");
  } else {
    drop_unused(names.map, {norm + ".*"});
  }
}

void keep_language(nlohmann::json& object, const Settings& config) {
  object["languages"] = {language_in(config)};
}

// clang-format off
constexpr EncoderStructure kXmodLayers = {.keys = layers::kBertKeys,
    .last_norm = "encoder.LayerNorm", .pooling = Pooling::TanhOfFirst, .in_layers = "*.adapter_modules.*", .reads = "pre_norm",
    .more = read_xmod, .layer_names = name_adapter, .settle = keep_language};

constexpr ModelType kXmodTypes[] = {
    {.type = "xmod", .embeddings = "roberta", .layers = &kXmodLayers, .heads = &heads::kRoberta,
     .prefix = "roberta."},
};
// clang-format on

}  // namespace

constinit const Family xmod = kXmodTypes;

}  // namespace posenc::families
