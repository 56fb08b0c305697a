#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace posenc {

/// An object in a configuration, whose keys are looked up by name. A key that is absent or null has
/// its fallback. Errors are c10::ValueError and name the key with the objects that contain it; the
/// public function adds its name and the file.
class RotarySettings {
 public:
  /// `path`: the names of the objects that contain it, each followed by a dot, such as
  /// `rope_parameters.`; empty for the configuration itself.
  RotarySettings(nlohmann::json object, std::string path)
      : object_(std::move(object)), path_(std::move(path)) {}

  const nlohmann::json& value(const std::string& name) const;
  bool has(const std::string& name) const { return !value(name).is_null(); }
  /// Whether the key is there, if only with null.
  bool mentions(const std::string& name) const { return object_.contains(name); }
  /// The first of `names`, separated by spaces, that has a value; without any, the first.
  std::string first_of(const std::string& names) const;
  /// The object under `name`; an empty one where it is absent.
  RotarySettings object(const std::string& name) const;
  /// Whether it has no keys.
  bool empty() const { return object_.empty(); }
  /// Gives `name` a value unless it has one.
  void set_default(const std::string& name, nlohmann::json value);
  void set(const std::string& name, nlohmann::json value) { object_[name] = std::move(value); }
  void erase(const std::string& name) { object_.erase(name); }
  /// Adds the keys of another object, which replace equal ones.
  void update(const RotarySettings& other) { object_.update(other.object_); }

  std::optional<double> real(const std::string& name) const;
  std::optional<int64_t> whole(const std::string& name) const;
  std::optional<bool> flag(const std::string& name) const;
  std::optional<std::string> text(const std::string& name) const;
  std::optional<std::vector<double>> reals(const std::string& name) const;
  std::optional<std::vector<int64_t>> wholes(const std::string& name) const;
  /// The number, which `reason` (such as `rope_type linear`) needs.
  double required(const std::string& name, const std::string& reason) const;

  /// Throws an error that `name` "must be" as `rule` describes, with its value.
  [[noreturn]] void refuse(const std::string& name, const std::string& rule) const;

 private:
  nlohmann::json object_;
  std::string path_;
};

}  // namespace posenc
