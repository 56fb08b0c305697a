#include "models/positions/rope_parameters.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace posenc {
namespace {

int64_t positive(const Settings& config, const char* key) {
  const int64_t value = config.integer_if(key).value_or(0);
  if (value <= 0) config.refuse(key, "must be positive");
  return value;
}

// Versions of transformers before 5 have `rope_scaling`, which takes precedence if both are
// present.
Settings shared_parameters(const Settings& config, const hf::ModelType& model) {
  const RotaryStructure& s = model.rope;
  const Settings scaling = config.inside_if_given("rope_scaling");
  if (!scaling.empty() && !s.ignores_rope_scaling) return scaling;
  Settings result = config.inside_if_given("rope_parameters");
  if (result.empty()) result = config.default_inside("rope_parameters");
  if (*s.more_key != '\0') {
    const auto turning = static_cast<double>(config.integer_if(s.rope_dim_key).value_or(0));
    const auto width = static_cast<double>(rotary_head_dim(config, model, ""));
    result.set_default("partial_rotary_factor", turning / width);
  }
  return result;
}

bool names_layer(const Settings& config, const char* key, const std::string& layer_type) {
  const nlohmann::json& names = config.given(key);
  if (names.is_array()) return std::find(names.begin(), names.end(), layer_type) != names.end();
  return names.is_object() && names.contains(layer_type);
}

// A kind of layer, with the parameters that the class gives it.
struct Layer : RotaryLayer {
  Settings defaults;
  double theta;
};

// The layer types that the class's own rope_parameters have, or the row.
std::vector<std::string> layer_types(const Settings& config, const hf::ModelType& model) {
  std::vector<std::string> names;
  for (const RotaryLayer& layer : model.rope.layers) names.emplace_back(layer.layer_type);
  const nlohmann::json& defaults = config.default_of("rope_parameters");
  if (!defaults.is_object()) return names;
  for (const auto& [name, parameters] : defaults.items()) {
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (parameters.is_object() && is_new) names.push_back(name);
  }
  return names;
}

double default_theta(const Settings& config, const hf::ModelType& model) {
  const nlohmann::json& theta = config.default_of("rope_theta");
  return theta.is_number() ? theta.get<double>() : model.rope.theta;
}

// rope_theta if rope_parameters has none.
double theta_beside(const Settings& config, const hf::ModelType& model) {
  return config.real_if(model.rope.theta_key).value_or(default_theta(config, model));
}

RotaryLayer row_of(const Settings& config, const hf::ModelType& model,
                   const std::string& layer_type) {
  const RotaryStructure& s = model.rope;
  for (const RotaryLayer& layer : s.layers) {
    if (layer.layer_type == layer_type) return layer;
  }
  const auto names = layer_types(config, model);
  if (std::find(names.begin(), names.end(), layer_type) != names.end()) {
    return {.layer_type = layer_type.c_str()};
  }
  if (names_layer(config, s.layers_key, layer_type)) {
    return {.layer_type = layer_type.c_str(), .theta_key = s.theta_key};
  }
  TORCH_CHECK_VALUE(false, config.source(), "`", model.type,
                    "` has a rotary embedding for each layer type: layer_type must be one of ",
                    fmt::format("{}", fmt::join(names, ", ")), ". Got ",
                    layer_type.empty() ? "no layer type" : layer_type);
}

Layer find_layer(const Settings& config, const hf::ModelType& model,
                 const std::string& layer_type) {
  const RotaryLayer row = row_of(config, model, layer_type);
  Settings defaults = config.default_inside("rope_parameters").inside_if_given(layer_type);
  const double theta = defaults.real_if("rope_theta").value_or(default_theta(config, model));
  return {row, std::move(defaults), theta};
}

// rope_parameters without those of layer types.
Settings beside_layers(const Settings& config, const hf::ModelType& model) {
  Settings rest = config.inside_if_given("rope_parameters");
  for (const std::string& name : layer_types(config, model)) rest.erase(name);
  return rest;
}

void check_shared(const Settings& config, const hf::ModelType& model) {
  const auto& layers = model.rope.layers;
  const bool takes = std::any_of(layers.begin(), layers.end(), [](const RotaryLayer& l) {
    return l.shared != SharedParameters::None;
  });
  if (!takes && !config.inside_if_given("rope_scaling").empty()) {
    config.refuse(
        "rope_scaling",
        fmt::format("must be left out: `{}` has rope_parameters by layer type", model.type));
  }
  if (model.rope.only_layers && !beside_layers(config, model).empty()) {
    config.refuse("rope_parameters", "must be objects by layer type and nothing else");
  }
}

// The entry of a layer in a list with one number per layer, or the single number for all layers.
double number_of_layer(const Settings& config, const std::string& key,
                       const std::string& layer_type, double fallback) {
  const auto& list = config.value(key);
  if (!list.is_array()) return config.given(key).is_null() ? fallback : *config.real_if(key);
  const std::vector<double> numbers = *config.reals_if(key);
  const nlohmann::json& types = config.value("layer_types");
  const auto found = std::find(types.begin(), types.end(), layer_type);
  const auto index = static_cast<size_t>(types.is_array() ? found - types.begin() : 0);
  if (index >= numbers.size()) config.refuse(key, "must be a number for each of layer_types");
  return numbers[index];
}

// The parameters that the configuration class gives to a layer without any of its own.
Settings layer_defaults(const Settings& config, const hf::ModelType& model, const Layer& layer) {
  Settings result =
      config.within(fmt::format("rope_parameters.{}", layer.layer_type), nlohmann::json::object());
  result.set("rope_type", layer.defaults.text_if("rope_type").value_or("default"));
  if (model.rope.lists) {
    result.set("rope_theta",
               number_of_layer(config, layer.theta_key, layer.layer_type, layer.theta));
    result.set("partial_rotary_factor",
               number_of_layer(config, "partial_rotary_factors", layer.layer_type, 1.0));
  }
  // `type`, the older name, has no effect, since rope_type is set.
  if (layer.shared == SharedParameters::Override)
    result.update(config.inside_if_given("rope_scaling"));
  return result;
}

// Completes `own`, the parameters of a layer that come from those without layer types.
void read_shared(const Settings& config, const hf::ModelType& model, const Layer& layer,
                 Settings& own) {
  if (layer.shared == SharedParameters::All) {
    own.set_default("rope_theta", theta_beside(config, model));
    return;
  }
  own.erase("rope_theta");
  own.erase("partial_rotary_factor");
  const std::string type =
      own.text_if("rope_type").value_or(own.text_if("type").value_or("default"));
  if (layer.yarn_attention_factor != 0.0 && type == "yarn") {
    own.set_default("attention_factor", layer.yarn_attention_factor);
  }
}

// partial_rotary_factor if rope_parameters has none.
std::optional<double> partial_beside(const Settings& config, const hf::ModelType& model) {
  const RotaryStructure& s = model.rope;
  if (!config.given(s.partial_key).is_null()) return config.real_if(s.partial_key);
  if (const auto width = config.integer_if(s.rotary_dim_key)) {
    return static_cast<double>(*width) / static_cast<double>(rotary_head_dim(config, model, ""));
  }
  const nlohmann::json& default_share = config.default_of("partial_rotary_factor");
  return default_share.is_number() ? std::optional<double>(default_share.get<double>())
                                   : std::nullopt;
}

Settings layer_parameters(const Settings& config, const hf::ModelType& model, const Layer& layer) {
  const RotaryStructure& s = model.rope;
  check_shared(config, model);
  const Settings all = config.inside_if_given("rope_parameters");
  const Settings scaling = config.inside_if_given("rope_scaling");
  Settings own = all.inside_if_given(layer.layer_type);
  bool is_given = !own.empty();
  const Settings shared = scaling.empty() ? beside_layers(config, model) : scaling;
  const bool reads_shared =
      layer.shared == SharedParameters::Scaling || layer.shared == SharedParameters::All;
  if (reads_shared && !shared.empty() && !(is_given && scaling.empty())) {
    own = shared;
    read_shared(config, model, layer, own);
    is_given = false;
  } else if (is_given) {
    if (s.lists) {  // rope_parameters replace these lists and rope_scaling
      own.set_default("rope_theta", layer.theta);
      return own;
    }
    if (layer.shared == SharedParameters::Override) own.update(scaling);
  } else {
    TORCH_CHECK_VALUE(all.empty() || s.merges, config.where(), "rope_parameters.", layer.layer_type,
                      " must be an object: `", model.type, "` rotates these layers by it");
    own = layer_defaults(config, model, layer);
  }
  if (!own.has("rope_theta")) {
    const bool is_beside = !config.given(layer.theta_key).is_null();
    own.set("rope_theta", is_beside ? *config.real_if(layer.theta_key) : layer.theta);
  }
  if (!config.given(layer.partial_key).is_null()) {
    own.set_default("partial_rotary_factor", *config.real_if(layer.partial_key));
  }
  const auto share = layer.defaults.real_if("partial_rotary_factor");
  if (share && (!is_given || s.merges)) own.set_default("partial_rotary_factor", *share);
  return own;
}

// The entry of per_layer_config for layer `number`. transformers pads the number with zeros when it
// saves a configuration: layer 5 of 30 is `05`.
Settings config_of_layer(const Settings& config, int64_t number) {
  const Settings layers = config.inside_if_given("per_layer_config");
  std::string name = std::to_string(number);
  for (; name.size() < 20; name.insert(0, "0")) {
    if (layers.has(name)) break;
  }
  return layers.inside_if_given(name);
}

void fill_in(const Settings& config, const hf::ModelType& model, Settings& own) {
  own.set_default("rope_theta", theta_beside(config, model));
  if (const auto partial = partial_beside(config, model)) {
    own.set_default("partial_rotary_factor", *partial);
  }
}

}  // namespace

std::optional<int64_t> number_in_layer(const Settings& config, int64_t number,
                                       const std::string& name) {
  const Settings layer = config_of_layer(config, number);
  return layer.has(name) ? layer.integer_if(name) : config.integer_if(name);
}

std::optional<int64_t> layer_number(const Settings& config, const std::string& layer_type,
                                    const std::string& name) {
  const bool is_null = config.mentions(name) && config.given(name).is_null();
  const auto for_all = is_null ? std::nullopt : config.integer_if(name);
  const nlohmann::json& types = config.value("layer_types");
  if (layer_type.empty() || !types.is_array()) return for_all;
  const auto found = std::find(types.begin(), types.end(), layer_type);
  if (found == types.end()) return for_all;
  const Settings layer = config_of_layer(config, found - types.begin());
  return layer.has(name) ? layer.integer_if(name) : for_all;
}

int64_t rotary_head_dim(const Settings& config, const hf::ModelType& model,
                        const std::string& layer_type) {
  const RotaryStructure& s = model.rope;
  const std::string key = s.head_dim_key;
  const bool is_global = s.global_head_dim != 0 && layer_type == "full_attention" &&
                         !config.mentions("per_layer_config");
  int64_t width = 0;
  if (*s.rope_dim_key != '\0' && config.given(key).is_null()) {
    width =
        config.integer_if(s.rope_dim_key).value_or(0) + config.integer_if(s.more_key).value_or(0);
  } else if (is_global) {
    width = config.integer_if("global_head_dim").value_or(s.global_head_dim);
  } else if (!key.empty()) {
    width = layer_number(config, layer_type, key).value_or(0);
  }
  if (width < 0 || (width == 0 && s.needs_head_dim)) config.refuse(key, "must be positive");
  if (width > 0) return width;
  const int64_t further = *s.divisor_key == '\0' ? 1 : positive(config, s.divisor_key);
  const int64_t parts = positive(config, s.heads_key) * further * s.divisor;
  return std::max(positive(config, s.hidden_key) * s.times / parts, s.least);
}

RopeSettings rope_settings(const Settings& config, const hf::ModelType& model,
                           const std::string& layer_type) {
  const char* most = "max_position_embeddings";
  const int64_t max_position = config.has(most) ? positive(config, most) : 0;
  const bool nested = !layer_types(config, model).empty();
  TORCH_CHECK_VALUE(nested || layer_type.empty(), config.source(), "`", model.type,
                    "` has one rotary embedding for all layers: layer_type must be left out. Got ",
                    layer_type);
  Settings own = config.within("rope_parameters", nlohmann::json::object());
  if (nested) {
    own = layer_parameters(config, model, find_layer(config, model, layer_type));
  } else if (!model.rope.ignores_rope_parameters) {
    own = shared_parameters(config, model);
  }
  if (!nested) fill_in(config, model, own);
  RopeSettings result{own, nested ? config.inside_if_given("rope_parameters") : own, max_position,
                      model};
  // A value outside rope_parameters takes precedence over one inside.
  const char* original = "original_max_position_embeddings";
  const auto beside = config.integer_if(original);
  if (!nested && beside) result.parameters.set(original, *beside);
  const bool is_late = config.is_given_late(most);
  result.parameters.set_default(original,
                                is_late ? config.default_of(most) : nlohmann::json(max_position));
  return result;
}

}  // namespace posenc
