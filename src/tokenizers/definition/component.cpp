#include "tokenizers/definition/component.h"

#include <utility>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

const nlohmann::json kMissing;  // null

}  // namespace

void refuse_component(const std::string& part, const std::string& rule, const nlohmann::json& got) {
  throw TokenizerError(part + ": must " + rule + ". Got " + io::shown(got));
}

Component::Component(std::string part, const nlohmann::json& object)
    : part_(std::move(part)), object_(&object) {
  if (!object.is_object()) refuse_component(part_, "be an object", object);
}

const nlohmann::json& Component::at(const char* field) const {
  const auto found = object_->find(field);
  return found == object_->end() ? kMissing : *found;
}

bool Component::has(const char* field) const { return object_->contains(field); }

void Component::refuse(const char* field, const std::string& rule) const {
  if (!has(field)) {
    throw TokenizerError(part_ + ": must have `" + field + "`, " + rule + ". It is missing");
  }
  refuse_component(part_ + ": `" + field + "`", "be " + rule, at(field));
}

bool Component::boolean(const char* field) const {
  const auto& value = at(field);
  if (!value.is_boolean()) refuse(field, "true or false");
  return value.get<bool>();
}

bool Component::boolean(const char* field, bool missing) const {
  return has(field) ? boolean(field) : missing;
}

std::optional<bool> Component::optional_boolean(const char* field) const {
  if (at(field).is_null()) return std::nullopt;
  return boolean(field);
}

std::string Component::string(const char* field) const {
  const auto& value = at(field);
  if (!value.is_string()) refuse(field, "a string");
  return value.get<std::string>();
}

std::string Component::string(const char* field, const std::string& missing) const {
  return has(field) ? string(field) : missing;
}

std::optional<std::string> Component::optional_string(const char* field) const {
  if (at(field).is_null()) return std::nullopt;
  return string(field);
}

char32_t Component::character(const char* field) const {
  const std::string text = string(field);
  std::size_t at = 0;
  const char32_t character = text.empty() ? 0 : next_character(text, at);
  if (text.empty() || at != text.size()) refuse(field, "a string of one character");
  return character;
}

uint64_t Component::number(const char* field) const {
  const auto& value = at(field);
  if (!value.is_number_unsigned()) refuse(field, "an integer that is not negative");
  return value.get<uint64_t>();
}

uint64_t Component::number(const char* field, uint64_t missing) const {
  return has(field) ? number(field) : missing;
}

std::optional<uint64_t> Component::optional_number(const char* field) const {
  if (at(field).is_null()) return std::nullopt;
  return number(field);
}

const nlohmann::json& Component::array(const char* field) const {
  if (!at(field).is_array()) refuse(field, "an array");
  return at(field);
}

const nlohmann::json& Component::object(const char* field) const {
  if (!at(field).is_object()) refuse(field, "an object");
  return at(field);
}

std::string component_type(const char* kind, const nlohmann::json& object) {
  return Component(kind, object).string("type");
}

}  // namespace posenc::text
