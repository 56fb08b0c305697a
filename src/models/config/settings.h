#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/config/config_class.h"

namespace posenc {

/// Settings from a JSON file in a model's folder, looked up by name. A setting that is absent or
/// null has the default of its class, and the fallback if the class has none. Null remains null,
/// which no accessor takes, where the class has another default but permits null. Errors name the
/// public function, the file, the setting and the rule: c10::ValueError, and WeightsError for a
/// file that cannot be read.
class Settings {
 public:
  /// The settings in the file at `path`, which has at most `most` bytes.
  Settings(std::string caller, std::string path, uint64_t most = 16'000'000);
  /// The settings in `text`, which messages call `name`.
  static Settings parse(std::string caller, std::string name, const std::string& text);
  /// The settings in `config`: the path of a file, or a text, which begins with a brace.
  static Settings path_or_text(std::string caller, const std::string& config);
  /// Settings that are in no file.
  static Settings of_object(std::string caller, nlohmann::json object);

  const std::string& path() const { return path_; }
  /// The public function that reads them.
  const std::string& caller() const { return caller_; }
  /// The same place with other settings.
  Settings with(nlohmann::json object) const {
    return {caller_, std::move(object), path_, within_};
  }
  /// How messages begin: `[caller] path: `, and for a setting with the objects around it.
  std::string source() const;
  std::string where() const { return source() + within_; }
  /// All of them as JSON.
  const nlohmann::json& object() const { return object_; }
  /// The same as settings of a configuration class of transformers, that of `model_type`: each may
  /// have any of the names that the class knows, is looked up by any of them, and has the class's
  /// default. Throws c10::ValueError for two names of one setting with different values.
  Settings of(std::string_view model_type) const;
  /// The key of the setting `name` in the file; where it is absent, the name that the class itself
  /// has for it.
  std::string key(std::string_view name) const {
    return std::string(class_->key_in(object_, name));
  }
  /// The settings in the object `name`; messages call them `name.setting`.
  Settings inside(std::string_view name) const;
  /// The same, but none at all where it is absent from the file; those that are the class's
  /// default; and those in another object.
  Settings inside_if_given(std::string_view name) const;
  Settings default_inside(std::string_view name) const;
  Settings within(std::string_view name, nlohmann::json object) const;
  /// Those of the model in `name`, `text_config` or `vision_config`, of a composite model. Files of
  /// older releases have them in `text_config_dict`, which replaces the other. Where the file has
  /// neither them nor their `model_type`, those are what the class gives to this part.
  Settings part(const std::string& name) const;
  /// Whether there is such a part.
  bool has_part(const std::string& name) const;
  bool has(std::string_view name) const { return !value(name).is_null(); }
  /// Whether there are no settings in the file.
  bool empty() const { return object_.empty(); }
  /// Whether the file has the key, if only with null.
  bool mentions(std::string_view name) const { return object_.contains(key(name)); }
  /// Whether the class reads the key of `name` only after it has derived defaults from the setting.
  bool is_given_late(std::string_view name) const { return class_->is_given_late(object_, name); }
  /// Whether the class has this setting.
  bool is_known(std::string_view name) const { return class_->has(name); }

  bool flag(std::string_view name, std::optional<bool> fallback = std::nullopt) const;
  double real(std::string_view name, std::optional<double> fallback = std::nullopt) const;
  std::string text(std::string_view name, std::optional<std::string> fallback = std::nullopt) const;
  /// An integer from `least` to `most`.
  int64_t integer(std::string_view name, int64_t least, int64_t most) const;
  int64_t integer(std::string_view name, int64_t fallback, int64_t least, int64_t most) const;

  /// The value, or nothing where it is null.
  std::optional<bool> flag_if(std::string_view name) const;
  std::optional<double> real_if(std::string_view name) const;
  std::optional<std::string> text_if(std::string_view name) const;
  std::optional<int64_t> integer_if(std::string_view name) const;
  std::optional<std::vector<double>> reals_if(std::string_view name) const;
  std::optional<std::vector<int64_t>> integers_if(std::string_view name) const;
  /// The number, which `reason` (such as `rope_type linear`) needs.
  double required(std::string_view name, const std::string& reason) const;

  /// Changes a setting, as a class does that derives some from others.
  void set(std::string_view name, nlohmann::json value);
  /// Replaces one by a value that is not the file's: errors call it `label`, such as an option.
  void replace(std::string_view name, nlohmann::json value, std::string label);
  /// That label; empty for a setting of the file.
  std::string label_of(std::string_view name) const;
  /// The same unless it has a value.
  void set_default(std::string_view name, nlohmann::json value);
  void erase(std::string_view name) { object_.erase(std::string(name)); }
  /// The same settings with another value of one.
  Settings with_value(std::string_view name, nlohmann::json value) const;
  /// The names of those whose values are integers, by the file or by the class.
  std::vector<std::string> names_of_integers() const;
  /// Adds the settings of another object, which replace equal ones.
  void update(const Settings& other) { object_.update(other.object_); }

  /// Names of one setting in different classes, as models/config/setting_names.h has them.
  using Names = std::span<const char* const>;
  /// That of this class; null if it has no such setting.
  const char* name_of(Names names) const;
  /// Its value, or the fallback.
  bool flag(Names names, bool fallback) const;
  int64_t integer(Names names, int64_t fallback, int64_t least, int64_t most) const;
  /// A number that is not negative, and one in [0, 1).
  double not_negative(Names names, double fallback) const;
  double probability(Names names, double fallback) const;

  /// One or several ids, each in [0, vocab).
  std::vector<int64_t> tokens(std::string_view name, int64_t vocab) const;
  /// One id in [0, vocab), or nothing where there is none.
  std::optional<int64_t> token_if(std::string_view name, int64_t vocab) const;

  /// What `make` returns; its c10::ValueError gets the place of these settings in front, unless it
  /// is that of one of them and has it.
  template <typename Make>
  auto placing_errors(const Make& make) const {
    try {
      return make();
    } catch (const c10::ValueError& error) {
      const std::string what = error.what_without_backtrace();
      if (what.starts_with(where())) throw;
      TORCH_CHECK_VALUE(false, where(), what);
    }
  }

  /// Throws c10::ValueError for a null in the file that this class does not take: it is a value of
  /// few settings, also where another name of the setting has one that counts.
  void refuse_nulls(const hf::ConfigClass& known) const;

  /// The value itself; null if it is absent and the class has no default.
  const nlohmann::json& value(std::string_view name) const;
  /// That in the file alone, and the class's default alone; null if there is none.
  const nlohmann::json& given(std::string_view name) const;
  const nlohmann::json& default_of(std::string_view name) const { return class_->default_of(name); }
  /// Throws an error that `name` violates `rule` ("must be ..."), with its value.
  [[noreturn]] void refuse(std::string_view name, const std::string& rule) const;
  /// The same, with a part of the value.
  [[noreturn]] void refuse(std::string_view name, const std::string& rule,
                           const nlohmann::json& got) const;

 private:
  bool falls_back(std::string_view name) const;
  std::string key_of_part(const std::string& name) const;
  const hf::ConfigClass& own_class() const;  // that the file's model_type has
  Settings(std::string caller, nlohmann::json object, std::string path, std::string within);

  std::string caller_, path_;
  std::string within_;  // the objects around these settings, with a dot at the end
  nlohmann::json object_;
  std::map<std::string, std::string, std::less<>> labels_;  // of settings that are not the file's
  const hf::ConfigClass* class_ = &hf::ConfigClass::of("");
};

}  // namespace posenc
