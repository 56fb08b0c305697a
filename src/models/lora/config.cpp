// read_lora_config(): the settings of adapter_config.json.
// posenc-budget: the settings of one file, read, checked and written

#include "models/lora/config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <span>

#include "base/text.h"
#include "models/config/settings.h"
#include "models/lora/python_regex.h"
#include "weights/common/file.h"
#include "weights/common/json.h"

namespace posenc {
namespace lora {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kReader = "read_lora_config";
constexpr uint64_t kMostText = 16'000'000;
constexpr int64_t kLargestRank = 1 << 20;

// What does not change what a trained adapter computes.
constexpr const char* kIgnored[] = {
    "auto_mapping",      "corda_config", "eva_config",     "inference_mode", "init_lora_weights",
    "loftq_config",      "lora_dropout", "lora_ga_config", "megatron_core",  "peft_version",
    "qalora_group_size", "revision",     "runtime_config", "velora_config"};
constexpr const char* kRead[] = {"alpha_pattern",
                                 "base_model_name_or_path",
                                 "bias",
                                 "exclude_modules",
                                 "fan_in_fan_out",
                                 "layers_pattern",
                                 "layers_to_transform",
                                 "lora_alpha",
                                 "lora_bias",
                                 "modules_to_save",
                                 "peft_type",
                                 "r",
                                 "rank_pattern",
                                 "target_modules",
                                 "task_type",
                                 "use_dora",
                                 "use_rslora"};
// Methods that change the base's weights when PEFT makes the layers.
constexpr const char* kChangesBase[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};

bool is_named(std::span<const char* const> names, const std::string& name) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

bool is_off(const Json& value) {
  return value.is_null() || value == Json(false) ||
         ((value.is_object() || value.is_array() || value.is_string()) &&
          (value.empty() || value == Json("")));
}

// The keys of one file, in its order, which counts for patterns.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : where_("[" + std::string(kReader) + "] " + path + ": ") {
    Json object;
    const std::string text = io::read_text(path, kMostText);
    try {
      object = io::json_tree<Json>(text, "its settings");
    } catch (const WeightsError& error) {
      TORCH_CHECK_VALUE(false, where_, error.reason());
    }
    TORCH_CHECK_VALUE(object.is_object(), where_, "must be a JSON object. Got ",
                      object.type_name());
    object_ = std::move(object);
  }

  const std::string& where() const { return where_; }
  const Json& object() const { return object_; }
  const Json& value(const char* key) const {
    static const Json none;
    const auto found = object_.find(key);
    return found == object_.end() ? none : *found;
  }
  [[noreturn]] void refuse(const char* key, const std::string& rule) const {
    TORCH_CHECK_VALUE(false, where_, key, " ", rule, ". Got ", io::shown(value(key)));
    std::abort();  // not reached
  }

  bool flag(const char* key) const {
    const Json& own = value(key);
    if (own.is_null()) return false;
    if (!own.is_boolean()) refuse(key, "must be true or false");
    return own.get<bool>();
  }
  std::string text(const char* key) const {
    const Json& own = value(key);
    if (own.is_null()) return "";
    if (!own.is_string()) refuse(key, "must be a text");
    return own.get<std::string>();
  }
  double number(const char* key, double fallback) const {
    const Json& own = value(key);
    if (own.is_null()) return fallback;
    if (!own.is_number() || !std::isfinite(own.get<double>())) refuse(key, "must be a number");
    return own.get<double>();
  }
  int64_t rank(const char* key, const Json& own) const {
    const bool fits = own.is_number() && own.get<double>() == std::floor(own.get<double>()) &&
                      own.get<double>() >= 1.0 && own.get<double>() <= kLargestRank;
    if (!fits) refuse(key, "must be an integer from 1 to " + std::to_string(kLargestRank));
    return static_cast<int64_t>(own.get<double>());
  }
  std::vector<std::string> texts(const char* key) const {
    const Json& own = value(key);
    if (own.is_null()) return {};
    if (own.is_string()) return {own.get<std::string>()};
    if (!own.is_array()) refuse(key, "must be a list of texts");
    std::vector<std::string> result;
    for (const Json& one : own) {
      if (!one.is_string() || one.get<std::string>().empty())
        refuse(key, "must be a list of texts");
      result.push_back(one.get<std::string>());
    }
    return result;
  }
  LoraConfig::Pattern pattern(const char* key, bool is_rank) const {
    const Json& own = value(key);
    if (own.is_null()) return {};
    if (!own.is_object()) refuse(key, "must be an object");
    LoraConfig::Pattern result;
    for (const auto& [name, one] : own.items()) {
      if (is_rank) rank(key, one);
      if (!one.is_number()) refuse(key, "must have numbers");
      result.emplace_back(name, one.get<double>());
    }
    return result;
  }
  std::vector<int64_t> layers(const char* key) const {
    const Json& own = value(key);
    const auto one_layer = [&](const Json& one) {
      if (!one.is_number_unsigned() || one.get<uint64_t>() > kLargestRank)
        refuse(key, "must be the number of a layer, or a list of them");
      return one.get<int64_t>();
    };
    if (own.is_null()) return {};
    if (!own.is_array()) return {one_layer(own)};
    std::vector<int64_t> result;
    for (const Json& one : own) result.push_back(one_layer(one));
    return result;
  }
  LoraTargets targets(const char* key, const LoraTargets& absent) const {
    const Json& own = value(key);
    if (own.is_null()) return absent;
    if (!own.is_string()) return texts(key);
    std::string text = own.get<std::string>();
    if (std::string(key) == "target_modules" && io::lower_case(text) == "all-linear")
      return LoraTargets::all_linear();
    return LoraTargets::pattern(std::move(text));
  }

 private:
  std::string where_;
  Json object_ = Json::object();
};

void refuse_others(const Reader& reader) {
  const std::string type = reader.text("peft_type");
  if (type != "LORA") reader.refuse("peft_type", "must be LORA");
  const Json& init = reader.value("init_lora_weights");
  if (init.is_string()) {
    const auto text = init.get<std::string>();
    for (const char* method : kChangesBase) {
      if (text.starts_with(method))
        reader.refuse("init_lora_weights",
                      "must be of a method that leaves the base's weights as they are, or the "
                      "adapter converted to one");
    }
  }
  for (const auto& [key, value] : reader.object().items()) {
    if (is_named(kRead, key) || is_named(kIgnored, key) || is_off(value)) continue;
    reader.refuse(key.c_str(), "is not supported, and must be left out, null, false or empty");
  }
}

// An adapter has a handful of expressions, and a model hundreds of names.
bool matches(const std::string& expression, const std::string& name) {
  static thread_local std::map<std::string, PythonRegex> known;
  auto found = known.find(expression);
  if (found == known.end()) {
    if (known.size() > 1000) known.clear();
    found = known.emplace(expression, PythonRegex("[LoraConfig] a pattern ", expression)).first;
  }
  return found->second.matches(name);
}

// The expressions that PEFT makes of these, of which a name begins with the second and third.
std::string of_pattern(const std::string& own) { return "(.*\\.)?(" + own + ")$"; }
std::string of_saved_module(const std::string& own) {
  return "(?:(^|.*\\.)" + own + "($|\\..*))(?s:.*)";
}

bool has_end(const std::string& name, const std::string& end) {
  return name == end || name.ends_with("." + end);
}

// The numbers in a name that something follows, and the dots before them.
std::vector<std::pair<std::size_t, int64_t>> numbers_in(const std::string& module) {
  constexpr std::size_t kMostDigits = 9;
  std::vector<std::pair<std::size_t, int64_t>> numbers;
  for (auto dot = module.find('.'); dot != std::string::npos; dot = module.find('.', dot + 1)) {
    const auto end = module.find_first_not_of("0123456789", dot + 1);
    if (end == std::string::npos || end == dot + 1 || module[end] != '.') continue;
    if (end - dot - 1 <= kMostDigits)
      numbers.emplace_back(dot, std::stoll(module.substr(dot + 1, end - dot - 1)));
  }
  return numbers;
}

// The number of the layer that a name is of; nothing without one. It is the first after a pattern
// at the beginning of a part of the name, or without patterns after two parts.
std::optional<int64_t> layer_of(const LoraConfig& config, const std::string& module) {
  const auto numbers = numbers_in(module);
  std::vector<std::string> patterns = config.layers_pattern();
  std::erase(patterns, "");
  if (patterns.empty()) {
    for (const auto& [dot, number] : numbers)
      if (module.find('.') < dot) return number;
  }
  for (const std::string& pattern : patterns) {
    for (std::size_t begin = 0;; begin = module.find('.', begin) + 1) {
      std::vector<int64_t> found;
      for (const auto& [dot, number] : numbers)
        if (begin <= dot && matches(pattern, module.substr(begin, dot - begin)))
          found.push_back(number);
      TORCH_CHECK_VALUE(found.size() < 2,
                        "[LoraConfig] layers_pattern must be followed by one "
                        "number in a name. Got ",
                        pattern, ", which is followed by ", found, " in ", module);
      if (!found.empty()) return found.front();
      if (module.find('.', begin) == std::string::npos) break;
    }
  }
  return std::nullopt;
}

}  // namespace

void check_config(const std::string& where, const LoraConfig& config) {
  TORCH_CHECK_VALUE(config.r() >= 1 && config.r() <= kLargestRank, where, "r must be from 1 to ",
                    kLargestRank, ". Got ", config.r());
  TORCH_CHECK_VALUE(std::isfinite(config.alpha()), where, "lora_alpha must be finite. Got ",
                    config.alpha());
  TORCH_CHECK_VALUE(config.dropout() >= 0.0 && config.dropout() < 1.0, where,
                    "lora_dropout must be in [0, 1). Got ", config.dropout());
  const bool is_list = config.targets().kind() == LoraTargets::Kind::Names;
  TORCH_CHECK_VALUE(!is_list || !config.targets().names().empty(), where,
                    "target_modules must have a name. Got an empty list");
  TORCH_CHECK_VALUE(config.layers().empty() || is_list ||
                        config.targets().kind() == LoraTargets::Kind::OfModelType,
                    where, "layers_to_transform must be with a list of target_modules");
  if (config.targets().kind() == LoraTargets::Kind::Pattern)
    PythonRegex(where + "target_modules ", config.targets().names().front());
  if (config.exclude().kind() == LoraTargets::Kind::Pattern)
    PythonRegex(where + "exclude_modules ", config.exclude().names().front());
  for (const auto* pattern : {&config.rank_pattern(), &config.alpha_pattern()}) {
    for (const auto& [text, value] : *pattern) PythonRegex(where + "a pattern ", of_pattern(text));
  }
  for (const std::string& text : config.modules_to_save())
    PythonRegex(where + "modules_to_save ", of_saved_module(text));
  for (const std::string& text : config.layers_pattern()) {
    const PythonRegex expression(where + "layers_pattern ", text);
    TORCH_CHECK_VALUE(!expression.is_choice(), where,
                      "layers_pattern must have | in groups alone. Got ", text);
  }
}

double value_for(const LoraConfig::Pattern& pattern, double setting, const std::string& module) {
  for (const auto& [text, value] : pattern)
    if (matches(of_pattern(text), module)) return value;
  return setting;
}

int64_t rank_of(const LoraConfig& config, const std::string& module) {
  const auto r = static_cast<double>(config.r());
  return static_cast<int64_t>(value_for(config.rank_pattern(), r, module));
}

double scale_of(const LoraConfig& config, const std::string& module) {
  const double alpha = value_for(config.alpha_pattern(), config.alpha(), module);
  const auto r = static_cast<double>(rank_of(config, module));
  return alpha / (config.rslora() ? std::sqrt(r) : r);
}

bool is_saved_module(const LoraConfig& config, const std::string& module) {
  return std::any_of(config.modules_to_save().begin(), config.modules_to_save().end(),
                     [&](const std::string& own) { return matches(of_saved_module(own), module); });
}

bool has_saved_values(const LoraConfig& config, const std::string& module) {
  for (std::string around = module; !around.empty();
       around = around.substr(0, around.find('.') == std::string::npos ? 0 : around.rfind('.'))) {
    for (const std::string& own : config.modules_to_save())
      if (around.ends_with(own)) return true;
  }
  return false;
}

bool is_target(const LoraConfig& config, const std::string& module,
               const std::vector<std::string>& defaults) {
  using Kind = LoraTargets::Kind;
  const auto is_listed = [&](const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return has_end(module, name); });
  };
  const LoraTargets& excluded = config.exclude();
  if (excluded.kind() == Kind::Pattern ? matches(excluded.names().front(), module)
                                       : is_listed(excluded.names()))
    return false;
  if (is_saved_module(config, module)) return false;
  const LoraTargets& targets = config.targets();
  if (targets.kind() == Kind::AllLinear) return true;
  if (targets.kind() == Kind::Pattern) return matches(targets.names().front(), module);
  const auto& names = targets.kind() == Kind::OfModelType ? defaults : targets.names();
  if (std::find(names.begin(), names.end(), module) != names.end()) return true;
  if (!is_listed(names)) return false;
  if (config.layers().empty()) return true;
  const auto layer = layer_of(config, module);
  return layer && std::count(config.layers().begin(), config.layers().end(), *layer) != 0;
}

std::vector<std::string> default_targets(const std::string& model_type) {
  struct Row {
    std::vector<std::string> model_types, names;
  };
  static const std::vector<Row> rows = {
      {{"bert", "roberta", "xlm-roberta", "electra", "layoutlm"}, {"query", "value"}},
      {{"deberta-v2"}, {"query_proj", "value_proj"}},
      {{"deberta"}, {"in_proj"}},
      {{"t5", "mt5"}, {"q", "v"}},
      {{"bloom"}, {"query_key_value"}},
      {{"mpt"}, {"Wqkv"}},
      {{"bart", "llama", "mistral", "gemma", "gemma2", "gemma3_text", "qwen2", "qwen3"},
       {"q_proj", "v_proj"}}};
  for (const Row& row : rows) {
    if (std::count(row.model_types.begin(), row.model_types.end(), model_type) != 0)
      return row.names;
  }
  return {};
}

Json json_of(const LoraConfig& config) {
  const auto object_of = [](const LoraConfig::Pattern& pattern) {
    Json object = Json::object();
    for (const auto& [name, value] : pattern) {
      if (value == std::floor(value)) {
        object[name] = static_cast<int64_t>(value);
      } else {
        object[name] = value;
      }
    }
    return object;
  };
  const auto list_or_null = [](const auto& list) { return list.empty() ? Json() : Json(list); };
  const auto targets_of = [](const LoraTargets& targets) -> Json {
    switch (targets.kind()) {
      case LoraTargets::Kind::OfModelType: return {};
      case LoraTargets::Kind::Pattern: return targets.names().front();
      case LoraTargets::Kind::AllLinear: return "all-linear";
      case LoraTargets::Kind::Names: break;
    }
    return targets.names().empty() ? Json() : Json(targets.names());
  };
  static constexpr const char* kBiases[] = {"none", "all", "lora_only"};
  Json json = {{"peft_type", "LORA"}};
  json["base_model_name_or_path"] = config.base().empty() ? Json() : Json(config.base());
  json["task_type"] = config.task_type().empty() ? Json() : Json(config.task_type());
  json["inference_mode"] = true;
  json["r"] = config.r();
  const bool is_whole = config.alpha() == std::floor(config.alpha());
  json["lora_alpha"] = is_whole ? Json(static_cast<int64_t>(config.alpha())) : Json(config.alpha());
  json["lora_dropout"] = config.dropout();
  json["target_modules"] = targets_of(config.targets());
  json["exclude_modules"] = targets_of(config.exclude());
  json["bias"] = kBiases[static_cast<int>(config.bias())];
  json["use_rslora"] = config.rslora();
  json["use_dora"] = config.dora();
  json["lora_bias"] = config.lora_bias();
  json["fan_in_fan_out"] = config.fan_in_fan_out();
  json["rank_pattern"] = object_of(config.rank_pattern());
  json["alpha_pattern"] = object_of(config.alpha_pattern());
  json["layers_to_transform"] = list_or_null(config.layers());
  json["layers_pattern"] = list_or_null(config.layers_pattern());
  json["modules_to_save"] = list_or_null(config.modules_to_save());
  json["init_lora_weights"] = true;
  return json;
}

}  // namespace lora

LoraConfig read_lora_config(const std::string& folder) {
  using namespace lora;
  return io::in_context(kReader, folder, [&] {
    const Reader reader((std::filesystem::path(folder) / kConfigFile).string());
    refuse_others(reader);
    LoraConfig config;
    if (!reader.value("r").is_null()) config.r(reader.rank("r", reader.value("r")));
    config.alpha(reader.number("lora_alpha", 8.0)).rslora(reader.flag("use_rslora"));
    config.dora(reader.flag("use_dora")).lora_bias(reader.flag("lora_bias"));
    config.dropout(reader.number("lora_dropout", 0.0));
    config.fan_in_fan_out(reader.flag("fan_in_fan_out"));
    config.targets(reader.targets("target_modules", LoraTargets()));
    config.exclude(reader.targets("exclude_modules", std::vector<std::string>()));
    config.rank_pattern(reader.pattern("rank_pattern", true));
    config.alpha_pattern(reader.pattern("alpha_pattern", false));
    config.layers(reader.layers("layers_to_transform"));
    config.layers_pattern(reader.texts("layers_pattern"));
    config.modules_to_save(reader.texts("modules_to_save"));
    config.task_type(reader.text("task_type")).base(reader.text("base_model_name_or_path"));
    const std::string bias = reader.value("bias").is_null() ? "none" : reader.text("bias");
    if (bias != "none" && bias != "all" && bias != "lora_only")
      reader.refuse("bias", "must be none, all or lora_only");
    config.bias(bias == "none"  ? LoraBias::None
                : bias == "all" ? LoraBias::All
                                : LoraBias::LoraOnly);
    check_config(reader.where(), config);
    return config;
  });
}

}  // namespace posenc
