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

const std::string* Params::find(const std::string& key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

std::optional<int64_t> Params::integer(const std::string& key) const {
  const std::string* text = find(key);
  if (!text) return std::nullopt;
  const auto value = whole_number(*text);
  if (!value) fail("--param {} must be a whole number. Got {}", key, *text);
  return value;
}

std::optional<double> Params::real(const std::string& key) const {
  const std::string* text = find(key);
  if (!text) return std::nullopt;
  const auto value = real_number(*text);
  if (!value) fail("--param {} must be a number. Got {}", key, *text);
  return value;
}

std::optional<std::string> Params::text(const std::string& key) const {
  const std::string* text = find(key);
  return text ? std::optional(*text) : std::nullopt;
}

bool Params::flag(const std::string& key, bool otherwise) const {
  const std::string* text = find(key);
  if (!text) return otherwise;
  if (*text == "true" || *text == "1") return true;
  if (*text == "false" || *text == "0") return false;
  fail("--param {} must be true or false. Got {}", key, *text);
}

PresetParams Params::for_preset() const {
  PresetParams params;
  for (const auto& [key, value] : values_) params.emplace(key, value);
  return params;
}

Scale Params::scale(const std::string& key, const Scale& otherwise) const {
  const std::string* text = find(key);
  if (!text) return otherwise;
  if (*text == "none") return Scale::None;
  if (*text == "sqrt_dim") return Scale::SqrtDim;
  const auto value = real_number(*text);
  if (!value) {
    fail("--param {} must be none, sqrt_dim or a number. Got {}", key, *text);
  }
  return Scale(*value);
}

}  // namespace posenc::cli
