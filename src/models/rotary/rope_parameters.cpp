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

// Versions of transformers before 5 have `rope_scaling`, which takes precedence if both are
// present.
RotarySettings flat_parameters(const RotarySettings& config, const RotaryModelRow& model) {
  const RotaryDefaults& d = model.defaults;
  const RotarySettings scaling = config.object("rope_scaling");
  if (!scaling.empty() && !d.ignores_rope_scaling) return scaling;
  RotarySettings result = config.object("rope_parameters");
  if (result.empty()) result = {nlohmann::json::parse(d.rope_parameters), "rope_parameters."};
  if (d.more != 0) {
    const auto turning = static_cast<double>(config.whole(d.rope_dim_key).value_or(d.head_dim));
    const auto width = static_cast<double>(rotary_head_dim(config, model, ""));
    result.set_default("partial_rotary_factor", turning / width);
  }
  return result;
}

bool names_layer(const RotarySettings& config, const char* key, const std::string& layer_type) {
  const nlohmann::json& names = config.value(key);
  if (names.is_array()) return std::find(names.begin(), names.end(), layer_type) != names.end();
  return names.is_object() && names.contains(layer_type);
}

RotaryLayerDefaults find_layer(const RotarySettings& config, const RotaryModelRow& model,
                               const std::string& layer_type) {
  const RotaryDefaults& d = model.defaults;
  std::vector<std::string> names;
  for (const RotaryLayerDefaults& layer : d.layers) {
    if (layer.layer_type == layer_type) return layer;
    names.push_back(layer.layer_type);
  }
  if (names_layer(config, d.layers_key, layer_type)) {
    return {.layer_type = layer_type.c_str(), .theta = d.theta, .theta_key = d.theta_key};
  }
  TORCH_CHECK_VALUE(false, "`", model.model_type,
                    "` has a rotary embedding for each layer type: layer_type must be one of ",
                    fmt::format("{}", fmt::join(names, ", ")), ". Got ",
                    layer_type.empty() ? "no layer type" : layer_type);
}

// rope_parameters without those of layer types.
RotarySettings beside_layers(const RotarySettings& config, const RotaryModelRow& model) {
  RotarySettings rest = config.object("rope_parameters");
  for (const RotaryLayerDefaults& layer : model.defaults.layers) rest.erase(layer.layer_type);
  return rest;
}

void check_flat(const RotarySettings& config, const RotaryModelRow& model) {
  const auto& layers = model.defaults.layers;
  const bool takes = std::any_of(layers.begin(), layers.end(), [](const RotaryLayerDefaults& l) {
    return l.flat != FlatUse::None;
  });
  if (!takes && !config.object("rope_scaling").empty()) {
    config.refuse("rope_scaling", fmt::format("left out: `{}` has rope_parameters by layer type",
                                              model.model_type));
  }
  if (model.defaults.only_layers && !beside_layers(config, model).empty()) {
    config.refuse("rope_parameters", "objects by layer type and nothing else");
  }
}

// The entry of a layer in a list with one number per layer, or the single number for all layers.
double number_of_layer(const RotarySettings& config, const std::string& key,
                       const std::string& layer_type, double fallback) {
  const auto& list = config.value(key);
  if (!list.is_array()) return config.real(key).value_or(fallback);
  const std::vector<double> numbers = *config.reals(key);
  const nlohmann::json& types = config.value("layer_types");
  const auto found = std::find(types.begin(), types.end(), layer_type);
  const auto index = static_cast<size_t>(types.is_array() ? found - types.begin() : 0);
  if (index >= numbers.size()) config.refuse(key, "a number for each of layer_types");
  return numbers[index];
}

// The parameters that the configuration class gives to a layer without any of its own.
RotarySettings layer_defaults(const RotarySettings& config, const RotaryModelRow& model,
                              const RotaryLayerDefaults& layer) {
  RotarySettings result(nlohmann::json::object(),
                        fmt::format("rope_parameters.{}.", layer.layer_type));
  result.set("rope_type", layer.rope_type);
  if (model.defaults.lists) {
    result.set("rope_theta",
               number_of_layer(config, layer.theta_key, layer.layer_type, layer.theta));
    result.set("partial_rotary_factor",
               number_of_layer(config, "partial_rotary_factors", layer.layer_type, 1.0));
  }
  // `type`, the older name, has no effect, since rope_type is set.
  if (layer.flat == FlatUse::Over) result.update(config.object("rope_scaling"));
  return result;
}

// Completes `own`, the parameters of a layer that come from those without layer types.
void take_flat(const RotarySettings& config, const RotaryModelRow& model,
               const RotaryLayerDefaults& layer, RotarySettings& own) {
  if (layer.flat == FlatUse::All) {
    own.set_default("rope_theta",
                    config.real(model.defaults.theta_key).value_or(model.defaults.theta));
    return;
  }
  own.erase("rope_theta");
  own.erase("partial_rotary_factor");
  const std::string type = own.text("rope_type").value_or(own.text("type").value_or("default"));
  if (layer.yarn_attention_factor != 0.0 && type == "yarn") {
    own.set_default("attention_factor", layer.yarn_attention_factor);
  }
}

// partial_rotary_factor if rope_parameters has none; 0: there is no default.
double partial_beside(const RotarySettings& config, const RotaryModelRow& model) {
  const RotaryDefaults& d = model.defaults;
  if (d.partial_key[0] != '\0' && config.has(d.partial_key)) return *config.real(d.partial_key);
  if (d.rotary_dim_key[0] == '\0' || !config.has(d.rotary_dim_key)) return d.partial;
  return static_cast<double>(*config.whole(d.rotary_dim_key)) /
         static_cast<double>(rotary_head_dim(config, model, ""));
}

RotarySettings layer_parameters(const RotarySettings& config, const RotaryModelRow& model,
                                const RotaryLayerDefaults& layer) {
  const RotaryDefaults& d = model.defaults;
  check_flat(config, model);
  const RotarySettings all = config.object("rope_parameters");
  const RotarySettings scaling = config.object("rope_scaling");
  RotarySettings own = all.object(layer.layer_type);
  bool is_given = !own.empty();
  const RotarySettings flat = scaling.empty() ? beside_layers(config, model) : scaling;
  const bool takes_flat = layer.flat == FlatUse::Scaling || layer.flat == FlatUse::All;
  if (takes_flat && !flat.empty() && !(is_given && scaling.empty())) {
    own = flat;
    take_flat(config, model, layer, own);
    is_given = false;
  } else if (is_given) {
    if (d.lists) {  // rope_parameters replace these lists and rope_scaling
      own.set_default("rope_theta", layer.theta);
      return own;
    }
    if (layer.flat == FlatUse::Over) own.update(scaling);
  } else {
    TORCH_CHECK_VALUE(all.empty() || d.merges, "`rope_parameters.", layer.layer_type,
                      "` must be an object: `", model.model_type, "` rotates these layers by it");
    own = layer_defaults(config, model, layer);
  }
  if (!own.has("rope_theta")) {
    own.set("rope_theta", config.real(layer.theta_key).value_or(layer.theta));
  }
  if (const auto share = config.real(layer.partial_key)) {
    own.set_default("partial_rotary_factor", *share);
  }
  if (layer.partial != 0.0 && (!is_given || d.merges)) {
    own.set_default("partial_rotary_factor", layer.partial);
  }
  return own;
}

// The entry of per_layer_config for layer `number`. transformers pads the number with zeros when it
// saves a configuration: layer 5 of 30 is `05`.
RotarySettings config_of_layer(const RotarySettings& config, int64_t number) {
  const RotarySettings layers = config.object("per_layer_config");
  std::string name = std::to_string(number);
  for (; name.size() < 20; name.insert(0, "0")) {
    if (layers.has(name)) break;
  }
  return layers.object(name);
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
  if (layer_type.empty() || !types.is_array()) return config.whole(name);
  const auto found = std::find(types.begin(), types.end(), layer_type);
  if (found == types.end()) return config.whole(name);
  const RotarySettings layer = config_of_layer(config, found - types.begin());
  return layer.has(name) ? layer.whole(name) : config.whole(name);
}

int64_t rotary_head_dim(const RotarySettings& config, const RotaryModelRow& model,
                        const std::string& layer_type) {
  const RotaryDefaults& d = model.defaults;
  const std::string key = d.head_dim_key;
  const bool is_global = d.global_head_dim != 0 && layer_type == "full_attention" &&
                         config.object("per_layer_config").empty();
  int64_t width = 0;
  if (d.rope_dim_key[0] != '\0' && !config.has(key)) {
    width = config.whole(d.rope_dim_key).value_or(d.head_dim);
    if (d.more != 0) width += config.whole(d.more_key).value_or(d.more);
  } else if (is_global) {
    width = config.whole("global_head_dim").value_or(d.global_head_dim);
  } else if (!key.empty()) {
    const auto given = layer_number(config, layer_type, key);
    width = given.value_or(config.mentions(key) ? 0 : d.head_dim);
  }
  if (width < 0 || (width == 0 && d.needs_head_dim)) config.refuse(key, "positive");
  if (width > 0) return width;
  const int64_t heads = positive(config, d.heads_key, d.heads);
  const int64_t parts = heads * positive(config, d.divisor_key, d.divisor);
  const int64_t times = config.mentions(key) ? 1 : d.head_factor;
  return std::max(times * positive(config, d.hidden_key, d.hidden) / parts, d.least);
}

RopeSettings rope_settings(const RotarySettings& config, const RotaryModelRow& model,
                           const std::string& layer_type) {
  const RotaryDefaults& d = model.defaults;
  const int64_t max_position = positive(config, "max_position_embeddings", d.max_position);
  const bool nested = !d.layers.empty();
  TORCH_CHECK_VALUE(nested || layer_type.empty(), "`", model.model_type,
                    "` has one rotary embedding for all layers: layer_type must be left out. Got ",
                    layer_type);
  RotarySettings own(nlohmann::json::object(), "");
  if (nested) {
    own = layer_parameters(config, model, find_layer(config, model, layer_type));
  } else if (!d.ignores_rope_parameters) {
    own = flat_parameters(config, model);
  }
  if (!nested) fill_in(config, model, own);
  RopeSettings result{own, nested ? config.object("rope_parameters") : own, max_position, model};
  // A value outside rope_parameters takes precedence over one inside.
  const char* original = "original_max_position_embeddings";
  const auto beside = config.whole(original);
  if (!nested && (beside || d.original_max_position != 0)) {
    result.parameters.set(original, beside.value_or(d.original_max_position));
  }
  const char* most = "max_position_embeddings";
  result.parameters.set_default(original, config.is_given_late(most)
                                              ? d.max_position
                                              : config.whole(most).value_or(d.max_position));
  return result;
}

}  // namespace posenc
