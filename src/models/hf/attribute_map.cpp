#include "models/hf/attribute_map.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "io/base/utf8.h"

namespace posenc::hf {
namespace {

struct MapRow {
  std::string_view model_type;
  std::string_view pairs;  // `alias=own`, or `alias:own` if the alias is a field of the class
};

#include "models/hf/attribute_maps.inc"

constexpr std::size_t kMostOfValue = 80;  // in an error message

std::string shown(const nlohmann::json& value) {
  return io::shortened(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                       kMostOfValue);
}

}  // namespace

AttributeMap::AttributeMap(std::string_view pairs) {
  while (!pairs.empty()) {
    const std::string_view pair = pairs.substr(0, pairs.find(' '));
    const std::size_t middle = pair.find_first_of("=:");
    aliases_.push_back({pair.substr(0, middle), pair.substr(middle + 1), pair[middle] == ':'});
    pairs.remove_prefix(std::min(pair.size() + 1, pairs.size()));
  }
}

const AttributeMap& AttributeMap::of(std::string_view model_type) {
  static const std::map<std::string_view, AttributeMap> all = [] {
    std::map<std::string_view, AttributeMap> maps;
    for (const MapRow& row : kAttributeMaps) maps.emplace(row.model_type, AttributeMap(row.pairs));
    return maps;
  }();
  static const AttributeMap none("");
  const auto found = all.find(model_type);
  return found == all.end() ? none : found->second;
}

std::string_view AttributeMap::own_name(std::string_view name) const {
  const auto found = std::find_if(aliases_.begin(), aliases_.end(),
                                  [&](const Alias& alias) { return alias.name == name; });
  return found == aliases_.end() ? name : found->own;
}

void AttributeMap::check(const nlohmann::json& settings, const std::string& where) const {
  for (const Alias& alias : aliases_) {
    const auto value = settings.find(alias.name);
    if (value == settings.end()) continue;
    const std::string_view key = key_in(settings, alias.name);
    const nlohmann::json& first = *settings.find(key);
    TORCH_CHECK_VALUE(*value == first, where, alias.name, " and ", key,
                      " are two names of one setting and must have the same value. Got ",
                      shown(*value), " and ", shown(first));
  }
}

std::string_view AttributeMap::key_in(const nlohmann::json& settings, std::string_view name) const {
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

bool AttributeMap::is_given_late(const nlohmann::json& settings, std::string_view name) const {
  const std::string_view own = own_name(name);
  return std::any_of(aliases_.begin(), aliases_.end(), [&](const Alias& alias) {
    if (alias.own != own) return false;
    const std::string_view early = alias.name_is_field ? alias.name : alias.own;
    const std::string_view late = alias.name_is_field ? alias.own : alias.name;
    return settings.contains(late) && !settings.contains(early);
  });
}

bool has_config_dicts(std::string_view model_type) {
  return std::find(std::begin(kWithConfigDicts), std::end(kWithConfigDicts), model_type) !=
         std::end(kWithConfigDicts);
}

}  // namespace posenc::hf
