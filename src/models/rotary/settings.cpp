#include "models/rotary/settings.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <cstdlib>

#include "io/base/utf8.h"

namespace posenc {
namespace {

const nlohmann::json kNone;
constexpr double kMostWhole = 9007199254740992.0;  // 2^53
constexpr std::size_t kMostOfRefused = 120;        // in an error message

bool is_whole(const nlohmann::json& value) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  return number == std::trunc(number) && std::abs(number) <= kMostWhole;
}

}  // namespace

RotarySettings RotarySettings::of(std::string_view model_type) const {
  RotarySettings result = *this;
  result.class_ = &hf::ConfigClass::of(model_type);
  result.class_->check(object_, where_ + path_);
  return result;
}

const nlohmann::json& RotarySettings::value(const std::string& name) const {
  return class_->value_in(object_, name);
}

const nlohmann::json& RotarySettings::given(const std::string& name) const {
  const auto found = object_.find(key(name));
  return found == object_.end() ? kNone : *found;
}

RotarySettings RotarySettings::object(const std::string& name) const {
  const nlohmann::json& found = given(name);
  if (!found.is_null() && !found.is_object()) refuse(name, "an object");
  return {found.is_null() ? nlohmann::json::object() : found, where_, path_ + name + "."};
}

RotarySettings RotarySettings::usual_object(const std::string& name) const {
  const nlohmann::json& found = usual(name);
  return {found.is_null() ? nlohmann::json::object() : found, where_, path_ + name + "."};
}

void RotarySettings::set_default(const std::string& name, nlohmann::json value) {
  if (!has(name)) object_[name] = std::move(value);
}

std::optional<double> RotarySettings::real(const std::string& name) const {
  const nlohmann::json& found = value(name);
  if (found.is_null()) return std::nullopt;
  if (!found.is_number() || !std::isfinite(found.get<double>())) refuse(name, "a finite number");
  return found.get<double>();
}

std::optional<int64_t> RotarySettings::whole(const std::string& name) const {
  const nlohmann::json& found = value(name);
  if (found.is_null()) return std::nullopt;
  if (!is_whole(found)) refuse(name, "a whole number");
  return static_cast<int64_t>(found.get<double>());
}

std::optional<bool> RotarySettings::flag(const std::string& name) const {
  const nlohmann::json& found = value(name);
  if (found.is_null()) return std::nullopt;
  if (!found.is_boolean()) refuse(name, "true or false");
  return found.get<bool>();
}

std::optional<std::string> RotarySettings::text(const std::string& name) const {
  const nlohmann::json& found = value(name);
  if (found.is_null()) return std::nullopt;
  if (!found.is_string()) refuse(name, "a text");
  return found.get<std::string>();
}

std::optional<std::vector<double>> RotarySettings::reals(const std::string& name) const {
  const nlohmann::json& found = value(name);
  if (found.is_null()) return std::nullopt;
  if (!found.is_array()) refuse(name, "a list of numbers");
  std::vector<double> numbers;
  for (const auto& entry : found) {
    if (!entry.is_number()) refuse(name, "a list of numbers");
    numbers.push_back(entry.get<double>());
  }
  return numbers;
}

std::optional<std::vector<int64_t>> RotarySettings::wholes(const std::string& name) const {
  const nlohmann::json& found = value(name);
  if (found.is_null()) return std::nullopt;
  if (!found.is_array()) refuse(name, "a list of whole numbers");
  std::vector<int64_t> numbers;
  for (const auto& entry : found) {
    if (!is_whole(entry)) refuse(name, "a list of whole numbers");
    numbers.push_back(static_cast<int64_t>(entry.get<double>()));
  }
  return numbers;
}

double RotarySettings::required(const std::string& name, const std::string& reason) const {
  const std::optional<double> number = real(name);
  TORCH_CHECK_VALUE(number.has_value(), where_, "`", path_, name, "` is needed for ", reason);
  return *number;
}

void RotarySettings::refuse(const std::string& name, const std::string& rule) const {
  const nlohmann::json& found = mentions(name) ? given(name) : value(name);
  const auto shown = found.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  TORCH_CHECK_VALUE(false, where_, "`", path_, key(name), "` must be ", rule, ". Got ",
                    io::shortened(shown, kMostOfRefused));
  std::abort();  // not reached
}

}  // namespace posenc
