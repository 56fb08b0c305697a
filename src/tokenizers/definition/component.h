#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tokenizers/definition/json_fields.h"

namespace posenc::text {

/// Throws TokenizerError: "part: what: must rule. Got value".
[[noreturn]] void refuse_component(const std::string& part, const std::string& rule,
                                   const nlohmann::json& got);

/// An object of tokenizer.json. As in the package, unknown fields are ignored. Errors name the
/// part, the field, what it has to be and what it is.
class Component : public JsonFields<Component, nlohmann::json> {
 public:
  /// `part` is its name in messages, such as "normalizer Strip".
  Component(std::string part, const nlohmann::json& object);

  const std::string& part() const { return part_; }
  /// A string of one character.
  char32_t character(const char* field) const;
  const nlohmann::json& array(const char* field) const;
  const nlohmann::json& object(const char* field) const;

  [[noreturn]] void refuse(const char* field, const std::string& rule) const;

 private:
  std::string part_;
};

/// The class that a component names by `type`.
std::string component_type(const char* kind, const nlohmann::json& object);

}  // namespace posenc::text
