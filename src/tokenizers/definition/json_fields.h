#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace posenc::text {

/// The fields of a JSON object, checked. One without a default has to be there. What is not as it
/// has to be is an error of the class that derives from it, whose `refuse(field, rule)` throws.
template <typename Derived, typename Json>
class JsonFields {
 public:
  /// `object` has to outlive it.
  explicit JsonFields(const Json& object) : object_(&object) {}

  const Json& json() const { return *object_; }
  bool has(const char* field) const { return object_->contains(field); }
  /// What is at `field`: null if it is missing.
  const Json& at(const char* field) const {
    static const Json missing;
    const auto found = object_->find(field);
    return found == object_->end() ? missing : *found;
  }

  bool boolean(const char* field) const {
    if (!at(field).is_boolean()) refuse(field, "true or false");
    return at(field).template get<bool>();
  }
  std::string string(const char* field) const {
    if (!at(field).is_string()) refuse(field, "a string");
    return at(field).template get<std::string>();
  }
  uint64_t number(const char* field) const {
    if (!at(field).is_number_unsigned()) refuse(field, "an integer that is not negative");
    return at(field).template get<uint64_t>();
  }
  /// The same, with a value for one that is missing.
  bool boolean(const char* field, bool missing) const {
    return has(field) ? boolean(field) : missing;
  }
  std::string string(const char* field, const std::string& missing) const {
    return has(field) ? string(field) : missing;
  }
  uint64_t number(const char* field, uint64_t missing) const {
    return has(field) ? number(field) : missing;
  }
  /// Null and missing are nothing.
  std::optional<bool> optional_boolean(const char* field) const {
    return at(field).is_null() ? std::nullopt : std::optional(boolean(field));
  }
  std::optional<std::string> optional_string(const char* field) const {
    return at(field).is_null() ? std::nullopt : std::optional(string(field));
  }
  std::optional<uint64_t> optional_number(const char* field) const {
    return at(field).is_null() ? std::nullopt : std::optional(number(field));
  }

 private:
  [[noreturn]] void refuse(const char* field, const char* rule) const {
    static_cast<const Derived&>(*this).refuse(field, rule);
  }

  const Json* object_;
};

}  // namespace posenc::text
