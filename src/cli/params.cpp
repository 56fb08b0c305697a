#include "cli/params.h"

#include "cli/arguments.h"
#include "cli/error.h"

namespace posenc::cli {

Params::Params(const std::vector<std::string>& assignments) {
  for (const auto& text : assignments) {
    const auto equals = text.find('=');
    const auto [at, fresh] = values_.emplace(text.substr(0, equals), text.substr(equals + 1));
    if (!fresh) fail("--param {} is given twice", at->first);
  }
}

void Params::allow(const std::string& subject, const std::vector<std::string>& known) const {
  for (const auto& [key, value] : values_) {
    bool found = false;
    for (const auto& name : known) found = found || name == key;
    if (found) continue;
    if (known.empty()) fail("--param {}: {} has no parameters", key, subject);
    fail("--param {}: {} has no such parameter{}", key, subject, suggestion(key, known));
  }
}

std::optional<std::string> Params::text(const std::string& key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<double> Params::real(const std::string& key) const {
  const auto given = text(key);
  const auto value = real_number(given.value_or(""));
  if (given && !value) fail("--param {} must be a number. Got {}", key, *given);
  return value;
}

PresetParams Params::for_preset() const {
  PresetParams params;
  for (const auto& [key, value] : values_) params.emplace(key, value);
  return params;
}

}  // namespace posenc::cli
