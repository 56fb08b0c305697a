#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/hf/config_class.h"

namespace posenc {

/// An object in a configuration, whose keys are looked up by name. A key that is absent has the
/// default of the configuration's class. Errors are c10::ValueError and name the key with the
/// objects that contain it.
class RotarySettings {
 public:
  /// `where`: how errors begin, with the public function and the file. `path`: the names of the
  /// objects that contain it, each followed by a dot, such as `rope_parameters.`; empty for the
  /// configuration itself.
  RotarySettings(nlohmann::json object, std::string where, std::string path = "")
      : object_(std::move(object)), where_(std::move(where)), path_(std::move(path)) {}

  /// The same as settings of a configuration class of transformers, which may have any of the names
  /// that the class knows. Throws c10::ValueError for two names of one setting with different
  /// values.
  RotarySettings of(std::string_view model_type) const;
  /// Whether the class reads the key of `name` only after it has derived defaults from the setting.
  bool is_given_late(const std::string& name) const { return class_->is_given_late(object_, name); }

  const std::string& where() const { return where_; }
  /// The value, in the configuration or by default; null if there is none.
  const nlohmann::json& value(const std::string& name) const;
  /// The value in the configuration; null if it has none.
  const nlohmann::json& given(const std::string& name) const;
  /// The class's default, and whether the class has the setting.
  const nlohmann::json& usual(const std::string& name) const { return class_->default_of(name); }
  bool is_known(const std::string& name) const { return class_->has(name); }
  bool has(const std::string& name) const { return !value(name).is_null(); }
  /// Whether the key is there, if only with null.
  bool mentions(const std::string& name) const { return object_.contains(key(name)); }
  /// The object under `name` in the configuration, and that which is the class's default; an empty
  /// one where it is absent.
  RotarySettings object(const std::string& name) const;
  RotarySettings usual_object(const std::string& name) const;
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
  std::string key(const std::string& name) const {
    return std::string(class_->key_in(object_, name));
  }

  nlohmann::json object_;
  std::string where_, path_;
  const hf::ConfigClass* class_ = &hf::ConfigClass::of("");
};

}  // namespace posenc
