#include "sinusoid/presets/reader.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cmath>

#include "core/check.h"
#include "core/nearest.h"
#include "platform/number.h"

namespace posenc {

PresetReader::PresetReader(const Preset& preset, const PresetParams& given) : preset_(preset) {
  std::vector<std::string> names;
  for (const PresetParam& param : preset.params) {
    names.push_back(param.name);
    if (!param.fallback.empty()) values_[param.name] = param.fallback;
  }
  for (const auto& [name, value] : given) {
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    TORCH_CHECK_VALUE(known, "[preset] `", preset.name, "` has no parameter `", name, "`; ",
                      names.empty()
                          ? std::string("it has none")
                          : fmt::format("the nearest are {}", detail::nearest_text(name, names)));
    values_[name] = value.text;
  }
  for (const std::string& name : names) {
    TORCH_CHECK_VALUE(values_.count(name), "[preset] `", preset.name, "` needs the parameter `",
                      name, "`");
  }
}

void PresetReader::refuse(const char* name, const char* rule) const {
  TORCH_CHECK_VALUE(false, "[preset] `", preset_.name, "`: ", name, " must be ", rule, ". Got ",
                    text(name));
  std::abort();  // not reached
}

const std::string& PresetReader::text(const char* name) const { return values_.at(name); }

double PresetReader::real(const char* name) const {
  const auto number = platform::parse_number<double>(text(name));
  if (!number || !std::isfinite(*number)) refuse(name, "a finite number");
  return *number;
}

int64_t PresetReader::integer(const char* name) const {
  const double value = real(name);
  if (value != std::trunc(value) || std::abs(value) > 9007199254740992.0) {
    refuse(name, "a whole number");
  }
  return static_cast<int64_t>(value);
}

bool PresetReader::flag(const char* name) const {
  const int64_t value = integer(name);
  if (value != 0 && value != 1) refuse(name, "0 or 1");
  return value == 1;
}

int64_t PresetReader::extent(const char* name) const {
  const int64_t value = integer(name);
  if (value < 1 || value > kPositionLimit) refuse(name, "a whole number in [1, 2^31]");
  return value;
}

double PresetReader::positive(const char* name) const {
  const double value = real(name);
  if (value <= 0.0) refuse(name, "positive");
  return value;
}

}  // namespace posenc
