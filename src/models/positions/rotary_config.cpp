#include "posenc/models/rotary_config.h"

#include <c10/util/Exception.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/named.h"
#include "models/config/settings.h"
#include "models/positions/model_options.h"
#include "models/positions/rope_parameters.h"
#include "posenc/positions/rotary/rotary_preset.h"

namespace posenc {
namespace {

using Json = nlohmann::json;

// The keys under which composite models have their text model.
constexpr const char* kTextConfigs[] = {"text_config", "thinker_config", "llm_config",
                                        "language_config"};

// The model type of the text model inside a composite one, whose settings replace `config` unless
// the file has them flat, as older files do; empty if there is none.
std::string inner_type(Settings& config, const std::string& model_type) {
  const hf::ConfigClass& own = hf::ConfigClass::of(model_type);
  for (const char* key : kTextConfigs) {
    if (!config.value(key).is_object()) continue;
    config = config.inside_if_given(key);
    return config.text_if("model_type").value_or(std::string(own.part_type(key)));
  }
  for (const char* key : kTextConfigs) {
    if (!own.part_type(key).empty()) return std::string(own.part_type(key));
  }
  return "";
}

// The model of a configuration, or of the text model inside it. `config` is replaced by the
// settings of that model.
const hf::ModelType& model_of(Settings& config) {
  const std::string name = config.text_if("model_type").value_or("");
  for (std::string type = name;; type = inner_type(config, type)) {
    if (const hf::ModelType* model = hf::find_model_type(type, &hf::ModelType::rotary)) {
      config = config.of(type);
      return *model;
    }
    if (type.empty()) {
      hf::refuse_model_type(config.source(),
                            "`model_type` must be one whose rotary embedding is known", name,
                            &hf::ModelType::rotary);
    }
  }
}

// The number of channels of a head that rotate: truncated, as by Python's int().
int64_t part_of(int64_t head_dim, double factor) {
  return static_cast<int64_t>(static_cast<double>(head_dim) * factor);
}

int64_t rotating_channels(const Settings& config, const RopeSettings& rope,
                          const RotaryOptions& preset, const std::string& layer_type) {
  const int64_t head_dim = rotary_head_dim(config, rope.model, layer_type);
  if (rope.model.rotary == std::string_view("dots3_note")) {
    return layer_number(config, layer_type, "qk_rope_head_dim").value_or(0);
  }
  const RotaryStructure& s = rope.model.rope;
  if (preset.axial() && s.reads_partial) {  // the share of one axis
    const double share = rope.parameters.real_if("partial_rotary_factor").value_or(1.0);
    return preset.axes() * part_of(head_dim, share);
  }
  if (preset.axial() && !s.whole_head) return preset.axes() * 2 * (head_dim / preset.axes() / 2);
  const std::string type = rope.rope_type();
  if (type == "proportional" || s.ignores_rope_parameters) return head_dim;
  const bool reads = type != "default" || preset.part() != rotary::Part::Whole || s.reads_partial;
  if (!reads) return head_dim;
  const double fallback = type == "default" && s.unscaled_partial != 0.0 ? s.unscaled_partial : 1.0;
  return part_of(head_dim, rope.parameters.real_if("partial_rotary_factor").value_or(fallback));
}

bool has_sections(rotary::Planes planes) {
  return planes == rotary::Planes::Chunked || planes == rotary::Planes::Interleaved ||
         planes == rotary::Planes::AxialInterleaved || planes == rotary::Planes::Doubled ||
         planes == rotary::Planes::HeightWidth;
}

// The order of an image's tokens, for presets that have them in blocks.
rotary::Grid grid_of(const Settings& config, const hf::ModelType& model, rotary::Grid grid) {
  if (grid.merge == 1) return grid;
  const auto given = config.integer_if("spatial_merge_size");
  grid.merge = model.rope.merge >= 0 ? model.rope.merge : given.value_or(grid.merge);
  grid.learned_prefix = model.type == std::string_view("mlcd_vision_model");
  return grid;
}

// Settings that only some presets have.
void read_preset_settings(const Settings& config, const hf::ModelType& model,
                          RotaryOptions& options) {
  const std::string_view preset = model.rotary;
  if (config.is_known("rope_interleave") && !config.flag_if("rope_interleave").value_or(false)) {
    options.pairing(rotary::Pairing::Halves);
  }
  if (preset == "sam2_video") {  // an older name, which takes precedence over the newer one
    options.base(config.real_if("memory_attention_rope_theta").value_or(options.base()));
  }
  options.grid(grid_of(config, model, options.grid()));
  if (preset == "roformer") options.rotary_value(config.flag_if("rotary_value").value_or(false));
  if (preset == "sam3_vit") {
    const int64_t window = config.integer_if("window_size").value_or(24);
    rotary::Grid grid = options.grid();
    grid.reference = {window, window};
    options.grid(grid);
  }
}

// Molmo 2 scales the frequencies in the layers of rope_scaling_layers only.
RopeSettings settings_of(const Settings& config, const hf::ModelType& model,
                         const std::string& layer_type) {
  if (!model.rope.unscaled_layers || layer_type.empty())
    return rope_settings(config, model, layer_type);
  TORCH_CHECK_VALUE(
      layer_type == "scaled" || layer_type == "unscaled", config.source(), "`", model.type,
      "` has layers of the types scaled, in rope_scaling_layers, and unscaled. Got ", layer_type);
  RopeSettings rope = rope_settings(config, model, "");
  if (layer_type == "unscaled") rope.parameters.set("rope_type", "default");
  return rope;
}

RotaryOptions options_of(const Settings& config, const hf::ModelType& model,
                         const std::string& layer_type) {
  const RopeSettings rope = settings_of(config, model, layer_type);
  const RotaryPreset& preset = find_rotary_preset(model.rotary);
  RotaryOptions options = preset.options;
  options.dim(rotating_channels(config, rope, options, layer_type));
  options.base(rope.parameters.required("rope_theta", "the frequencies"));
  if (preset.derive != nullptr) preset.derive(options);
  options.scaling(scaling_of(rope));
  if (has_sections(options.planes())) {
    const char* key = rope.parameters.has("xdrope_section") ? "xdrope_section" : "mrope_section";
    if (const auto sections = rope.parameters.integers_if(key)) options.sections(*sections);
    if (options.sections().empty()) rope.parameters.refuse(key, "must be a list of integers");
  }
  read_preset_settings(config, model, options);
  return options;
}

RotaryOptions checked(RotaryOptions options, const std::string& where, const char* model_type) {
  try {
    options.validate();
  } catch (const c10::ValueError& error) {
    TORCH_CHECK_VALUE(false, where, "`", model_type, "`: ", error.what_without_backtrace());
  }
  return options;
}

// The parameters that are outside rope_parameters in a configuration.
const std::vector<std::string> kBeside = {"head_dim", "max_position_embeddings",
                                          "original_max_position_embeddings"};
const std::vector<std::string> kInside = {
    "rope_theta",       "rope_type",      "factor",           "partial_rotary_factor",
    "mrope_section",    "beta_fast",      "beta_slow",        "truncate",
    "mscale",           "mscale_all_dim", "attention_factor", "low_freq_factor",
    "high_freq_factor", "short_factor",   "long_factor",      "short_mscale",
    "long_mscale",      "alpha"};

// A number, true or false; several with commas are a list; a text otherwise.
Json value_of(const std::string& text) {
  const Json scalar = Json::parse(text, nullptr, false);
  if (scalar.is_number() || scalar.is_boolean()) return scalar;
  const Json list = Json::parse("[" + text + "]", nullptr, false);
  return list.is_array() && list.size() > 1 ? list : Json(text);
}

}  // namespace

std::vector<RotaryModel> rotary_models() {
  return hf::models_with<RotaryModel>(&hf::ModelType::rotary);
}

RotaryOptions rotary_options_from_hf(const std::string& config, const std::string& layer_type) {
  Settings settings = Settings::path_or_text("rotary_options_from_hf", config);
  const hf::ModelType& model = model_of(settings);
  return rotary_options_of(settings, model, layer_type);
}

RotaryOptions rotary_options_of(const Settings& config, const hf::ModelType& model,
                                const std::string& layer_type) {
  return checked(options_of(config, model, layer_type), config.source(), model.type);
}

RotaryOptions rotary_options_from_params(std::string_view preset, const PresetParams& params) {
  const RotaryPreset& entry = find_rotary_preset(preset);
  const std::string& name = entry.name;
  const std::vector<std::string> own = package_parameters(name);
  Json config = Json::object(), inside = Json::object();
  for (const auto& [key, value] : params) {
    const bool beside = detail::find_named(kBeside, key) || detail::find_named(own, key);
    if (!beside && !detail::find_named(kInside, key)) {
      std::vector<std::string> names = kInside;
      names.insert(names.end(), own.begin(), own.end());
      names.insert(names.end(), kBeside.begin(), kBeside.end());
      detail::refuse_name(names, key, "[rotary_options_from_params] ",
                          "there is no parameter `{}`; the nearest are {}");
    }
    (beside ? config : inside)[key] = value_of(value.text);
  }
  TORCH_CHECK_VALUE(config.contains("head_dim"), "[rotary_options_from_params] `", name,
                    "` needs the parameter `head_dim`");
  config["rope_parameters"] = std::move(inside);
  hf::ModelType model = {.type = name.c_str(), .rotary = name.c_str()};
  model.rope.theta = entry.options.base();
  model.rope.whole_head = entry.source.rfind("transformers ", 0) != 0;
  const auto settings = Settings::of_object("rotary_options_from_params", std::move(config));
  RotaryOptions options = options_of(settings, model, "");
  apply_package_parameters(name, settings, options);
  return checked(std::move(options), settings.source(), model.type);
}

}  // namespace posenc
