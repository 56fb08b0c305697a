#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace posenc::text {

/// Throws TokenizerError: "part: what: must rule. Got value".
[[noreturn]] void refuse_component(const std::string& part, const std::string& rule,
                                   const nlohmann::json& got);

/// The fields of an object of tokenizer.json. As in the package, one without a default has to be
/// there, and unknown ones are ignored. Every function throws TokenizerError, which names the part,
/// the field, what it has to be and what it is.
class Component {
 public:
  /// `part` is its name in messages, such as "normalizer Strip". `object` has to outlive it.
  Component(std::string part, const nlohmann::json& object);

  const std::string& part() const { return part_; }
  const nlohmann::json& json() const { return *object_; }
  bool has(const char* field) const;

  bool boolean(const char* field) const;
  bool boolean(const char* field, bool missing) const;
  /// Null and missing are nothing.
  std::optional<bool> optional_boolean(const char* field) const;
  std::string string(const char* field) const;
  std::string string(const char* field, const std::string& missing) const;
  std::optional<std::string> optional_string(const char* field) const;
  /// A string of one character.
  char32_t character(const char* field) const;
  uint64_t number(const char* field) const;
  uint64_t number(const char* field, uint64_t missing) const;
  std::optional<uint64_t> optional_number(const char* field) const;
  const nlohmann::json& array(const char* field) const;
  const nlohmann::json& object(const char* field) const;

  [[noreturn]] void refuse(const char* field, const std::string& rule) const;
  /// What is at `field`: null if it is missing.
  const nlohmann::json& at(const char* field) const;

 private:
  std::string part_;
  const nlohmann::json* object_;
};

/// The class that a component names by `type`.
std::string component_type(const char* kind, const nlohmann::json& object);

}  // namespace posenc::text
