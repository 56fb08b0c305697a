#include "models/settings.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "io/base/file.h"
#include "io/base/json_tree.h"
#include "io/base/utf8.h"
#include "posenc/io/error.h"

namespace posenc {
namespace {

constexpr uint64_t kLongestSettings = 16'000'000;  // in bytes
constexpr std::size_t kMostOfValue = 80;           // in an error message

// The JSON object in `text`, which messages call `name`.
nlohmann::json parse_settings(const std::string& caller, const std::string& name,
                              const std::string& text) {
  nlohmann::json object;
  try {
    object = io::unique_json_tree<nlohmann::json>(text, "its settings");
  } catch (const WeightsError& error) {
    TORCH_CHECK_VALUE(false, "[", caller, "] ", name, ": ", error.reason());
  }
  TORCH_CHECK_VALUE(object.is_object(), "[", caller, "] ", name, ": must be a JSON object. Got ",
                    object.type_name());
  return object;
}

// The JSON object in a file of settings, such as a config.json.
nlohmann::json read_settings(const std::string& caller, const std::string& path) {
  const io::InputFile file(path);
  TORCH_CHECK_VALUE(file.size() <= kLongestSettings, "[", caller, "] ", path,
                    ": must have at most ", kLongestSettings, " bytes. Got ", file.size());
  return parse_settings(caller, path, file.read(0, file.size()));
}

bool is_token(const nlohmann::json& value, int64_t vocab) {
  return value.is_number_unsigned() && value.get<uint64_t>() < static_cast<uint64_t>(vocab);
}

}  // namespace

Settings::Settings(std::string caller, std::string path)
    : caller_(std::move(caller)), path_(std::move(path)), object_(read_settings(caller_, path_)) {}

Settings Settings::parse(std::string caller, std::string name, const std::string& text) {
  auto object = parse_settings(caller, name, text);
  return Settings(std::move(caller), std::move(name), "", std::move(object));
}

Settings Settings::path_or_text(std::string caller, const std::string& config) {
  const std::size_t first = config.find_first_not_of(" \t\r\n");
  const bool is_text = first != std::string::npos && config[first] == '{';
  return is_text ? parse(std::move(caller), "the configuration", config)
                 : Settings(std::move(caller), config);
}

Settings Settings::inside(const char* name) const {
  if (!value(name).is_object()) refuse(name, "must be an object");
  return Settings(caller_, path_, within_ + name + ".", value(name));
}

Settings Settings::of(std::string_view model_type) const {
  Settings result = *this;
  result.class_ = &hf::ConfigClass::of(model_type);
  result.class_->check(object_, where());
  return result;
}

// transformers replaces the settings in `name` by those of the older object, and by the defaults of
// the class where the older object has none.
std::string Settings::place_of_part(const std::string& name) const {
  const std::string older = name + "_dict";
  return has(older.c_str()) && hf::has_config_dicts(text("model_type", "")) ? older : name;
}

Settings Settings::part(const std::string& name) const {
  const std::string place = place_of_part(name);
  const nlohmann::json& usual = own_class().default_of(name);
  Settings result(caller_, path_, within_ + place + ".", usual);
  if (!has(place.c_str())) return result;
  result = inside(place.c_str());
  if (!usual.is_null()) result.object_.emplace("model_type", usual["model_type"]);
  return result;
}

bool Settings::has_part(const std::string& name) const {
  return has(place_of_part(name).c_str()) || !own_class().part_type(name).empty();
}

const hf::ConfigClass& Settings::own_class() const {
  return hf::ConfigClass::of(text("model_type", ""));
}

const nlohmann::json& Settings::value(const char* name) const {
  return class_->value_in(object_, name);
}

void Settings::refuse(const char* name, const std::string& rule) const {
  const auto got = value(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  TORCH_CHECK_VALUE(false, where(), key(name), " ", rule, ". Got ",
                    io::shortened(got, kMostOfValue));
}

bool Settings::falls_back(const char* name) const {
  return !has(name) && class_->default_of(name).is_null();
}

bool Settings::flag(const char* name, std::optional<bool> fallback) const {
  if (fallback && falls_back(name)) return *fallback;
  if (!value(name).is_boolean()) refuse(name, "must be true or false");
  return value(name).get<bool>();
}

double Settings::real(const char* name, std::optional<double> fallback) const {
  if (fallback && falls_back(name)) return *fallback;
  if (!value(name).is_number()) refuse(name, "must be a number");
  return value(name).get<double>();
}

std::string Settings::text(const char* name, std::optional<std::string> fallback) const {
  if (fallback && falls_back(name)) return *fallback;
  if (!value(name).is_string()) refuse(name, "must be a text");
  return value(name).get<std::string>();
}

int64_t Settings::whole(const char* name, int64_t fallback, int64_t least, int64_t most) const {
  return falls_back(name) ? fallback : whole(name, least, most);
}

int64_t Settings::whole(const char* name, int64_t least, int64_t most) const {
  const auto& given = value(name);
  const bool fits = given.is_number_integer() &&
                    !(given.is_number_unsigned() && given.get<uint64_t>() > INT64_MAX) &&
                    given.get<int64_t>() >= least && given.get<int64_t>() <= most;
  if (!fits) {
    refuse(name,
           "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return given.get<int64_t>();
}

const char* Settings::name_of(Names names) const {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const char* name) { return class_->has(name); });
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

int64_t Settings::whole(Names names, int64_t fallback, int64_t least, int64_t most) const {
  const char* name = name_of(names);
  return name ? whole(name, fallback, least, most) : fallback;
}

std::vector<int64_t> Settings::tokens(const char* name, int64_t vocab) const {
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

std::vector<int64_t> Settings::single_tokens(const char* name, int64_t vocab) const {
  if (!has(name)) return {};
  const std::string rule =
      "must be a list of lists of one token each, in [0, " + std::to_string(vocab) + ")";
  if (!value(name).is_array()) refuse(name, rule);
  std::vector<int64_t> ids;
  for (const auto& list : value(name)) {
    if (!list.is_array() || list.size() != 1 || !is_token(list[0], vocab)) refuse(name, rule);
    ids.push_back(list[0].get<int64_t>());
  }
  return ids;
}

}  // namespace posenc
