#include "tokenizers/definition/component.h"

#include <utility>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

void refuse_component(const std::string& part, const std::string& rule, const nlohmann::json& got) {
  throw TokenizerError(part + ": must " + rule + ". Got " + io::shown(got));
}

Component::Component(std::string part, const nlohmann::json& object)
    : JsonFields(object), part_(std::move(part)) {
  if (!object.is_object()) refuse_component(part_, "be an object", object);
}

void Component::refuse(const char* field, const std::string& rule) const {
  if (!has(field)) {
    throw TokenizerError(part_ + ": must have `" + field + "`, " + rule + ". It is missing");
  }
  refuse_component(part_ + ": `" + field + "`", "be " + rule, at(field));
}

char32_t Component::character(const char* field) const {
  const std::string text = string(field);
  std::size_t at = 0;
  const char32_t character = text.empty() ? 0 : next_character(text, at);
  if (text.empty() || at != text.size()) refuse(field, "a string of one character");
  return character;
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
