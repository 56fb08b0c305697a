#include "models/config/config_class.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "core/named.h"
#include "weights/common/json.h"

namespace posenc::hf {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(words.back().size() + 1, text.size()));
  }
  return words;
}

}  // namespace

struct ClassRow {
  std::string_view model_type;
  std::string_view aliases;   // `alias=own`, or `alias:own` if the alias is a field of the class
  std::string_view optional;  // the settings that may be null although their default is not
  std::string_view defaults;  // as JSON
};

namespace {

// The settings of a class that posenc does not read and that may not be null.
struct UnreadRow {
  std::string_view model_type, names;
};

#include "models/config/config_classes.inc"

}  // namespace

ConfigClass::ConfigClass(const ClassRow& row)
    : optional_(words_of(row.optional)), defaults_(nlohmann::json::parse(row.defaults)) {
  for (const std::string_view pair : words_of(row.aliases)) {
    const std::size_t middle = pair.find_first_of("=:");
    aliases_.push_back({pair.substr(0, middle), pair.substr(middle + 1), pair[middle] == ':'});
  }
  if (const UnreadRow* const unread = detail::find_named(kUnreadSettings, row.model_type))
    unread_ = words_of(unread->names);
}

// A class is parsed when it is first asked for.
const ConfigClass& ConfigClass::of(std::string_view model_type) {
  static const ConfigClass none(ClassRow{"", "", "", "{}"});
  static std::mutex mutex;
  static std::map<std::string_view, std::unique_ptr<const ConfigClass>> parsed;
  const ClassRow* const row = detail::find_named(kConfigClasses, model_type);
  if (row == nullptr) return none;
  const std::lock_guard lock(mutex);
  auto& found = parsed[row->model_type];
  if (!found) found = std::make_unique<const ConfigClass>(*row);
  return *found;
}

std::string_view ConfigClass::own_name(std::string_view name) const {
  const Alias* found = detail::find_named(aliases_, name);
  return found == nullptr ? name : found->own;
}

void ConfigClass::check(const nlohmann::json& settings, const std::string& where) const {
  for (const Alias& alias : aliases_) {
    const auto value = settings.find(alias.name);
    if (value == settings.end()) continue;
    const std::string_view key = key_in(settings, alias.name);
    const nlohmann::json& first = *settings.find(key);
    TORCH_CHECK_VALUE(*value == first, where, alias.name, " and ", key,
                      " are two names of one setting and must have the same value. Got ",
                      io::shown(*value), " and ", io::shown(first));
  }
}

std::string_view ConfigClass::key_in(const nlohmann::json& settings, std::string_view name) const {
  if (aliases_.empty()) return name;
  const std::string_view own = own_name(name);
  const auto has_value = [&](std::string_view key) {
    const auto found = settings.find(key);
    return found != settings.end() && !found->is_null();
  };
  if (has_value(own)) return own;
  const auto found_by = [&](const auto& fits) {
    return std::find_if(aliases_.begin(), aliases_.end(),
                        [&](const Alias& alias) { return alias.own == own && fits(alias.name); });
  };
  if (const auto given = found_by(has_value); given != aliases_.end()) return given->name;
  if (settings.contains(own)) return own;
  const auto null = found_by([&](std::string_view key) { return settings.contains(key); });
  return null == aliases_.end() ? own : null->name;
}

bool ConfigClass::is_given_late(const nlohmann::json& settings, std::string_view name) const {
  const std::string_view own = own_name(name);
  return std::any_of(aliases_.begin(), aliases_.end(), [&](const Alias& alias) {
    if (alias.own != own) return false;
    const std::string_view early = alias.name_is_field ? alias.name : alias.own;
    const std::string_view late = alias.name_is_field ? alias.own : alias.name;
    return settings.contains(late) && !settings.contains(early);
  });
}

const nlohmann::json& ConfigClass::value_in(const nlohmann::json& settings,
                                            std::string_view name) const {
  const auto found = settings.find(key_in(settings, name));  // end() if settings is null
  if (found == settings.end()) return default_of(name);
  const bool is_value = !found->is_null() || std::find(optional_.begin(), optional_.end(),
                                                       own_name(name)) != optional_.end();
  return is_value ? *found : default_of(name);
}

const nlohmann::json& ConfigClass::default_of(std::string_view name) const {
  static const nlohmann::json kNone;
  const auto found = defaults_.find(own_name(name));
  return found == defaults_.end() ? kNone : *found;
}

bool ConfigClass::refuses_null(std::string_view name) const {
  const auto is_among = [&](const std::vector<std::string_view>& names) {
    return std::find(names.begin(), names.end(), own_name(name)) != names.end();
  };
  return is_among(unread_) || (!default_of(name).is_null() && !is_among(optional_));
}

std::string_view ConfigClass::part_type(std::string_view part) const {
  const nlohmann::json& defaults = default_of(part);
  return defaults.is_null() ? std::string_view()
                            : defaults["model_type"].get_ref<const std::string&>();
}

bool has_config_dicts(std::string_view model_type) {
  return std::find(std::begin(kWithConfigDicts), std::end(kWithConfigDicts), model_type) !=
         std::end(kWithConfigDicts);
}

}  // namespace posenc::hf
