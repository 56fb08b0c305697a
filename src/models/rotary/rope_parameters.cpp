#include "models/rotary/rope_parameters.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/nearest.h"

namespace posenc {
namespace {

int64_t positive(const RotarySettings& config, const char* key, int64_t fallback) {
  const int64_t value = config.whole(key).value_or(fallback);
  if (config.has(key) && value <= 0) config.refuse(key, "positive");
  return value;
}

// Versions of transformers before 5 have `rope_scaling`, which goes first where both are there.
RotarySettings flat_parameters(const RotarySettings& config, const RotaryModelRow& model) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const RotarySettings found = config.object(key);
    if (!found.empty()) return found;
  }
  return {nlohmann::json::parse(model.defaults.rope_parameters), "rope_parameters."};
}

const RotaryLayerDefaults& find_layer(const RotaryModelRow& model, const std::string& layer_type) {
  std::vector<std::string> names;
  for (const RotaryLayerDefaults& layer : model.defaults.layers) {
    if (layer.layer_type == layer_type) return layer;
    names.push_back(layer.layer_type);
  }
  TORCH_CHECK_VALUE(false, "[rotary_options_from_hf] `", model.model_type,
                    "` has a rotary embedding for each layer type: layer_type must be one of ",
                    fmt::format("{}", fmt::join(names, ", ")), ". Got ",
                    layer_type.empty() ? "none" : layer_type);
}

// What the configuration class makes of a layer without parameters of its own.
RotarySettings layer_defaults(const RotarySettings& config, const RotaryLayerDefaults& layer) {
  RotarySettings result(nlohmann::json::object(),
                        fmt::format("rope_parameters.{}.", layer.layer_type));
  result.set("rope_type", layer.rope_type);
  const RotarySettings scaling = config.object("rope_scaling");
  if (!layer.takes_scaling || scaling.empty()) return result;
  result.update(scaling);
  if (scaling.has("type") && !scaling.has("rope_type")) {
    result.set("rope_type", scaling.value("type"));
  }
  if (layer.yarn_attention_factor != 0.0 && result.value("rope_type") == "yarn") {
    result.set_default("attention_factor", layer.yarn_attention_factor);
  }
  return result;
}

RotarySettings layer_parameters(const RotarySettings& config, const RotaryModelRow& model,
                                const RotaryLayerDefaults& layer) {
  const RotarySettings all = config.object("rope_parameters");
  RotarySettings own = all.object(layer.layer_type);
  const bool is_given = !own.empty();
  TORCH_CHECK_VALUE(is_given || all.empty() || model.defaults.merges,
                    "[rotary_options_from_hf] `rope_parameters.", layer.layer_type,
                    "` must be an object: `", model.model_type,
                    "` rotates these layers by it. Got none");
  if (!is_given) own = layer_defaults(config, layer);
  if (is_given && layer.takes_scaling) own.update(config.object("rope_scaling"));
  own.set_default("rope_theta", config.real(layer.theta_key).value_or(layer.theta));
  if (layer.partial != 0.0 && (!is_given || model.defaults.merges)) {
    own.set_default("partial_rotary_factor",
                    config.real("partial_rotary_factor").value_or(layer.partial));
  }
  return own;
}

// partial_rotary_factor where rope_parameters has none; 0: it has no default.
double partial_beside(const RotarySettings& config, const RotaryModelRow& model) {
  const RotaryDefaults& d = model.defaults;
  if (d.partial_key[0] != '\0' && config.has(d.partial_key)) return *config.real(d.partial_key);
  if (d.rotary_dim_key[0] == '\0' || !config.has(d.rotary_dim_key)) return d.partial;
  return static_cast<double>(*config.whole(d.rotary_dim_key)) /
         static_cast<double>(rotary_head_dim(config, model, ""));
}

void fill_in(const RotarySettings& config, const RotaryModelRow& model, RotarySettings& own) {
  const RotaryDefaults& d = model.defaults;
  own.set_default("rope_theta", config.real(d.theta_key).value_or(d.theta));
  const double partial = partial_beside(config, model);
  if (partial != 0.0) own.set_default("partial_rotary_factor", partial);
}

}  // namespace

std::optional<int64_t> layer_number(const RotarySettings& config, const std::string& layer_type,
                                    const std::string& name) {
  const nlohmann::json& types = config.value("layer_types");
  const RotarySettings layers = config.object("per_layer_config");
  if (layer_type.empty() || !types.is_array()) return config.whole(name);
  const auto found = std::find(types.begin(), types.end(), layer_type);
  const std::string index = std::to_string(found - types.begin());
  if (found == types.end() || !layers.object(index).has(name)) return config.whole(name);
  return layers.object(index).whole(name);
}

int64_t rotary_head_dim(const RotarySettings& config, const RotaryModelRow& model,
                        const std::string& layer_type) {
  const RotaryDefaults& d = model.defaults;
  const bool is_global = d.global_head_dim != 0 && layer_type == "full_attention" &&
                         config.object("per_layer_config").empty();
  int64_t width = 0;
  if (d.rope_dim_key[0] != '\0' && !config.has(d.head_dim_key)) {
    width = config.whole(d.rope_dim_key).value_or(d.head_dim);
    if (d.more != 0) width += config.whole(d.more_key).value_or(d.more);
  } else if (is_global) {
    width = config.whole("global_head_dim").value_or(d.global_head_dim);
  } else if (d.head_dim_key[0] != '\0') {
    const auto given = layer_number(config, layer_type, d.head_dim_key);
    width = given.value_or(config.mentions(d.head_dim_key) ? 0 : d.head_dim);
  }
  if (width < 0) config.refuse(d.head_dim_key, "positive");
  if (width > 0) return width;
  return positive(config, d.hidden_key, d.hidden) / positive(config, d.heads_key, d.heads);
}

RopeSettings rope_settings(const RotarySettings& config, const RotaryModelRow& model,
                           const std::string& layer_type) {
  const RotaryDefaults& d = model.defaults;
  const int64_t max_position = positive(config, d.max_position_key, d.max_position);
  const bool nested = !d.layers.empty();
  TORCH_CHECK_VALUE(nested || layer_type.empty(), "[rotary_options_from_hf] `", model.model_type,
                    "` has one rotary embedding for all layers: layer_type must be left out. Got ",
                    layer_type);
  RotarySettings own(nlohmann::json::object(), "");
  if (nested) {
    own = layer_parameters(config, model, find_layer(model, layer_type));
  } else if (!d.ignores_rope_parameters) {
    own = flat_parameters(config, model);
  }
  if (!nested) fill_in(config, model, own);
  RopeSettings result{own, nested ? config.object("rope_parameters") : own, max_position, model};
  // Beside the parameters it goes before the one inside.
  const char* original = "original_max_position_embeddings";
  const auto beside = config.whole(original);
  if (!nested && (beside || d.original_max_position != 0)) {
    result.parameters.set(original, beside.value_or(d.original_max_position));
  }
  result.parameters.set_default(original, max_position);
  return result;
}

}  // namespace posenc
