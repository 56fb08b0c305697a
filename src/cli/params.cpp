#include "cli/params.h"

#include "cli/usage.h"

namespace posenc::cli {

Params::Params(const std::vector<std::string>& assignments) {
  for (const auto& text : assignments) {
    const auto equals = text.find('=');
    const auto [at, fresh] = values_.emplace(text.substr(0, equals), text.substr(equals + 1));
    if (!fresh) fail_usage("--param {} is given twice", at->first);
  }
}

std::optional<std::string> Params::text(const std::string& key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? std::nullopt : std::optional(at->second);
}

PresetParams Params::for_preset() const {
  PresetParams params;
  for (const auto& [key, value] : values_) params.emplace(key, value);
  return params;
}

}  // namespace posenc::cli
