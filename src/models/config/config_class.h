#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace posenc::hf {

struct ClassRow;

/// A configuration class of transformers: the defaults of its settings, and their aliases, the
/// other names under which its files may give them, such as `num_attention_heads` for DistilBERT's
/// own `n_heads`.
class ConfigClass {
 public:
  struct Alias {
    std::string_view name, own;
    bool name_is_field;  ///< the own name is then the one that is read later
  };

  /// That of a model type; one without defaults and aliases if it is unknown.
  static const ConfigClass& of(std::string_view model_type);
  explicit ConfigClass(const ClassRow& row);

  /// Throws c10::ValueError, beginning with `where`, if `settings` has several names of one setting
  /// with different values.
  void check(const nlohmann::json& settings, const std::string& where) const;
  /// The key that `settings` has for the setting of which `name` is one name; the class's own name
  /// if it has none.
  std::string_view key_in(const nlohmann::json& settings, std::string_view name) const;
  /// Whether `settings` has it under a name that the class reads only after it has derived the
  /// defaults of other settings from this one's.
  bool is_given_late(const nlohmann::json& settings, std::string_view name) const;
  /// The value that the class has for the setting with these `settings`: theirs, or the default.
  /// Null in them is the default too, unless the class knows null as a value. Null if the class
  /// derives the default from others, or has no such setting.
  const nlohmann::json& value_in(const nlohmann::json& settings, std::string_view name) const;
  /// The default alone.
  const nlohmann::json& default_of(std::string_view name) const;
  /// The model type of a part, such as `text_config`; empty if there is none.
  std::string_view part_type(std::string_view part) const;
  /// Whether the class takes no null for the setting, whatever reads it.
  bool refuses_null(std::string_view name) const;
  /// Whether the class has such a setting.
  bool has(std::string_view name) const { return defaults_.contains(own_name(name)); }

  const std::vector<Alias>& aliases() const { return aliases_; }
  /// All defaults, by the class's own names.
  const nlohmann::json& defaults() const { return defaults_; }

 private:
  std::string_view own_name(std::string_view name) const;

  std::vector<Alias> aliases_;
  std::vector<std::string_view> optional_;  // settings that may be null
  std::vector<std::string_view> unread_;    // others that may not
  nlohmann::json defaults_;
};

/// Whether configurations of the composite model `model_type` may have `text_config_dict` and
/// `vision_config_dict`.
bool has_config_dicts(std::string_view model_type);

}  // namespace posenc::hf
