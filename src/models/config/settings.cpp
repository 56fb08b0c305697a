// posenc-budget: one class: each way in which a setting is read
#include "models/config/settings.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "posenc/weights/error.h"
#include "weights/common/file.h"
#include "weights/common/json.h"

namespace posenc {
namespace {

constexpr double kMaxInteger = 9007199254740992.0;  // 2^53

// The JSON object in `text`, which messages call `name`.
nlohmann::json parse_settings(const std::string& caller, const std::string& name,
                              const std::string& text) {
  nlohmann::json object;
  try {
    object = io::json_tree<nlohmann::json>(text, "its settings");
  } catch (const WeightsError& error) {
    TORCH_CHECK_VALUE(false, "[", caller, "] ", name, ": ", error.reason());
  }
  TORCH_CHECK_VALUE(object.is_object(), "[", caller, "] ", name, ": must be a JSON object. Got ",
                    object.type_name());
  return object;
}

// The JSON object in a file of settings, such as a config.json.
nlohmann::json read_settings(const std::string& caller, const std::string& path, uint64_t most) {
  const io::InputFile file(path);
  TORCH_CHECK_VALUE(file.size() <= most, "[", caller, "] ", path, ": must have at most ", most,
                    " bytes. Got ", file.size());
  return parse_settings(caller, path, file.read(0, file.size()));
}

// Python takes 4.0 for 4.
bool is_integer(const nlohmann::json& value) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  return number == std::trunc(number) && std::abs(number) <= kMaxInteger;
}

bool is_token(const nlohmann::json& value, int64_t vocab) {
  return value.is_number_unsigned() && value.get<uint64_t>() < static_cast<uint64_t>(vocab);
}

}  // namespace

Settings::Settings(std::string caller, std::string path, uint64_t most)
    : caller_(std::move(caller)),
      path_(std::move(path)),
      object_(read_settings(caller_, path_, most)) {}

Settings::Settings(std::string caller, nlohmann::json object, std::string path, std::string within)
    : caller_(std::move(caller)),
      path_(std::move(path)),
      within_(std::move(within)),
      object_(std::move(object)) {}

Settings Settings::parse(std::string caller, std::string name, const std::string& text) {
  auto object = parse_settings(caller, name, text);
  return {std::move(caller), std::move(object), std::move(name), ""};
}

Settings Settings::of_object(std::string caller, nlohmann::json object) {
  return {std::move(caller), std::move(object), "", ""};
}

std::string Settings::source() const {
  return "[" + caller_ + "] " + path_ + (path_.empty() ? "" : ": ");
}

Settings Settings::path_or_text(std::string caller, const std::string& config) {
  const std::size_t first = config.find_first_not_of(" \t\r\n");
  const bool is_text = first != std::string::npos && config[first] == '{';
  return is_text ? parse(std::move(caller), "the configuration", config)
                 : Settings(std::move(caller), config);
}

Settings Settings::within(std::string_view name, nlohmann::json object) const {
  return {caller_, std::move(object), path_, within_ + std::string(name) + "."};
}

Settings Settings::inside(std::string_view name) const {
  if (!value(name).is_object()) refuse(name, "must be an object");
  return within(name, value(name));
}

Settings Settings::inside_if_given(std::string_view name) const {
  if (given(name).is_null()) return within(name, nlohmann::json::object());
  if (!given(name).is_object()) refuse(name, "must be an object");
  return within(name, given(name));
}

Settings Settings::default_inside(std::string_view name) const {
  return within(name, default_of(name).is_null() ? nlohmann::json::object() : default_of(name));
}

Settings Settings::of(std::string_view model_type) const {
  Settings result = *this;
  result.class_ = &hf::ConfigClass::of(model_type);
  result.class_->check(object_, where());
  return result;
}

// transformers replaces the settings in `name` by those of the older object, and by the defaults of
// the class where the older object has none.
std::string Settings::key_of_part(const std::string& name) const {
  const std::string older = name + "_dict";
  return has(older) && hf::has_config_dicts(text("model_type", "")) ? older : name;
}

Settings Settings::part(const std::string& name) const {
  const std::string key = key_of_part(name);
  const nlohmann::json& defaults = own_class().default_of(name);
  if (!has(key)) return within(key, defaults);
  Settings result = inside(key);
  if (!defaults.is_null()) result.object_.emplace("model_type", defaults["model_type"]);
  return result;
}

bool Settings::has_part(const std::string& name) const {
  return has(key_of_part(name)) || !own_class().part_type(name).empty();
}

const hf::ConfigClass& Settings::own_class() const {
  return hf::ConfigClass::of(text("model_type", ""));
}

const nlohmann::json& Settings::value(std::string_view name) const {
  return class_->value_in(object_, name);
}

const nlohmann::json& Settings::given(std::string_view name) const {
  static const nlohmann::json kNone;
  const auto found = object_.find(key(name));
  return found == object_.end() ? kNone : *found;
}

void Settings::set(std::string_view name, nlohmann::json value) {
  object_[std::string(name)] = std::move(value);
}

Settings Settings::with_value(std::string_view name, nlohmann::json value) const {
  Settings result = *this;
  result.set(key(name), std::move(value));
  return result;
}

std::vector<std::string> Settings::names_of_integers() const {
  std::vector<std::string> names;
  for (const auto& setting : class_->defaults().items())
    if (value(setting.key()).is_number_integer()) names.push_back(setting.key());
  for (const auto& setting : object_.items())
    if (setting.value().is_number_integer() && !is_known(setting.key()))
      names.push_back(setting.key());
  return names;
}

void Settings::replace(std::string_view name, nlohmann::json value, std::string label) {
  set(name, std::move(value));
  labels_[std::string(name)] = std::move(label);
}

std::string Settings::label_of(std::string_view name) const {
  const auto found = labels_.find(name);
  return found == labels_.end() ? "" : found->second;
}

void Settings::set_default(std::string_view name, nlohmann::json value) {
  if (!has(name)) set(name, std::move(value));
}

void Settings::refuse(std::string_view name, const std::string& rule) const {
  refuse(name, rule, mentions(name) ? given(name) : value(name));
}

void Settings::refuse(std::string_view name, const std::string& rule,
                      const nlohmann::json& got) const {
  const std::string label = label_of(name);
  TORCH_CHECK_VALUE(false, label.empty() ? where() + key(name) : "[" + caller_ + "] " + label, " ",
                    rule, ". Got ", io::shown(got));
}

void Settings::refuse_nulls(const hf::ConfigClass& known) const {
  for (const auto& [name, value] : object_.items())
    if (value.is_null() && (known.refuses_null(name) || !known.value_in(object_, name).is_null()))
      refuse(name, "must be left out or have a value", value);
}

bool Settings::falls_back(std::string_view name) const {
  return !has(name) && class_->default_of(name).is_null();
}

bool Settings::flag(std::string_view name, std::optional<bool> fallback) const {
  if (fallback && falls_back(name)) return *fallback;
  if (!value(name).is_boolean()) refuse(name, "must be true or false");
  return value(name).get<bool>();
}

double Settings::real(std::string_view name, std::optional<double> fallback) const {
  if (fallback && falls_back(name)) return *fallback;
  if (!value(name).is_number() || !std::isfinite(value(name).get<double>()))
    refuse(name, "must be a number");
  return value(name).get<double>();
}

std::string Settings::text(std::string_view name, std::optional<std::string> fallback) const {
  if (fallback && falls_back(name)) return *fallback;
  if (!value(name).is_string()) refuse(name, "must be a text");
  return value(name).get<std::string>();
}

std::optional<bool> Settings::flag_if(std::string_view name) const {
  return has(name) ? std::optional(flag(name)) : std::nullopt;
}

std::optional<double> Settings::real_if(std::string_view name) const {
  return has(name) ? std::optional(real(name)) : std::nullopt;
}

std::optional<std::string> Settings::text_if(std::string_view name) const {
  return has(name) ? std::optional(text(name)) : std::nullopt;
}

std::optional<int64_t> Settings::integer_if(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  if (!is_integer(value(name))) refuse(name, "must be an integer");
  return static_cast<int64_t>(value(name).get<double>());
}

std::optional<std::vector<double>> Settings::reals_if(std::string_view name) const {
  const nlohmann::json& list = value(name);
  if (list.is_null()) return std::nullopt;
  if (!list.is_array() ||
      !std::all_of(list.begin(), list.end(), [](const auto& entry) { return entry.is_number(); })) {
    refuse(name, "must be a list of numbers");
  }
  return list.get<std::vector<double>>();
}

std::optional<std::vector<int64_t>> Settings::integers_if(std::string_view name) const {
  const nlohmann::json& list = value(name);
  if (list.is_null()) return std::nullopt;
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_integer)) {
    refuse(name, "must be a list of integers");
  }
  return list.get<std::vector<int64_t>>();
}

double Settings::required(std::string_view name, const std::string& reason) const {
  const auto number = real_if(name);
  TORCH_CHECK_VALUE(number, where(), name, " is needed for ", reason);
  return *number;
}

int64_t Settings::integer(std::string_view name, int64_t fallback, int64_t least,
                          int64_t most) const {
  return falls_back(name) ? fallback : integer(name, least, most);
}

int64_t Settings::integer(std::string_view name, int64_t least, int64_t most) const {
  const auto& given = value(name);
  const bool fits = given.is_number_integer() &&
                    !(given.is_number_unsigned() && given.get<uint64_t>() > INT64_MAX) &&
                    given.get<int64_t>() >= least && given.get<int64_t>() <= most;
  if (!fits) {
    refuse(name,
           "must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return given.get<int64_t>();
}

const char* Settings::name_of(Names names) const {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](std::string_view name) { return class_->has(name); });
  return found == names.end() ? nullptr : *found;
}

bool Settings::flag(Names names, bool fallback) const {
  const char* name = name_of(names);
  return name ? flag(name, fallback) : fallback;
}

double Settings::not_negative(Names names, double fallback) const {
  const char* name = name_of(names);
  if (!name) return fallback;
  const double number = real(name);
  if (!(number >= 0.0)) refuse(name, "must not be negative");
  return number;
}

double Settings::probability(Names names, double fallback) const {
  const double number = not_negative(names, fallback);
  if (!(number < 1.0)) refuse(name_of(names), "must lie in [0, 1)");
  return number;
}

int64_t Settings::integer(Names names, int64_t fallback, int64_t least, int64_t most) const {
  const char* name = name_of(names);
  return name ? integer(name, fallback, least, most) : fallback;
}

std::vector<int64_t> Settings::tokens(std::string_view name, int64_t vocab) const {
  if (!has(name)) return {};
  const auto& given = value(name);
  std::vector<int64_t> ids;
  for (const auto& id : given.is_array() ? given : nlohmann::json::array({given})) {
    if (!is_token(id, vocab)) {
      refuse(name, "must be a token in [0, " + std::to_string(vocab) + "), or several");
    }
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

std::optional<int64_t> Settings::token_if(std::string_view name, int64_t vocab) const {
  const auto ids = tokens(name, vocab);
  if (ids.size() > 1) refuse(name, "must be one token");
  return ids.empty() ? std::nullopt : std::optional(ids.front());
}

}  // namespace posenc
