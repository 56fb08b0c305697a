#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace posenc::hf {

/// The attribute_map of a configuration class of transformers: the other names under which its
/// files may give a setting, such as `num_attention_heads` for DistilBERT's own `n_heads`.
class AttributeMap {
 public:
  struct Alias {
    std::string_view name, own;
    bool name_is_field;  ///< the own name is then the one that is read later
  };

  /// That of a model type; an empty one if it is unknown or has no aliases.
  static const AttributeMap& of(std::string_view model_type);

  /// Throws c10::ValueError, beginning with `where`, if `settings` has several names of one setting
  /// with different values.
  void check(const nlohmann::json& settings, const std::string& where) const;
  /// The key that `settings` has for the setting of which `name` is one name; the class's own name
  /// if it has none.
  std::string_view key_in(const nlohmann::json& settings, std::string_view name) const;
  /// Whether `settings` has it under a name that the class reads only after it has derived the
  /// defaults of other settings from this one's.
  bool is_given_late(const nlohmann::json& settings, std::string_view name) const;

  const std::vector<Alias>& aliases() const { return aliases_; }

 private:
  explicit AttributeMap(std::string_view pairs);
  std::string_view own_name(std::string_view name) const;

  std::vector<Alias> aliases_;
};

/// Whether configurations of the composite model `model_type` may have `text_config_dict` and
/// `vision_config_dict`.
bool has_config_dicts(std::string_view model_type);

}  // namespace posenc::hf
