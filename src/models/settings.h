#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/hf/config_class.h"

namespace posenc {

/// Settings from a JSON file in a model's folder, looked up by name. A setting that is absent or
/// null has the default of its class, and the fallback if the class has none. Null remains null,
/// which no accessor takes, where the class has another default but permits null. Errors name the
/// public function, the file, the setting and the rule: c10::ValueError, and WeightsError for a
/// file that cannot be read.
class Settings {
 public:
  /// The settings in the file at `path`.
  Settings(std::string caller, std::string path);
  /// The settings in `text`, which messages call `name`.
  static Settings parse(std::string caller, std::string name, const std::string& text);
  /// The settings in `config`: the path of a file, or a text, which begins with a brace.
  static Settings path_or_text(std::string caller, const std::string& config);

  const std::string& path() const { return path_; }
  /// How messages begin: `[caller] path: `.
  std::string where() const { return "[" + caller_ + "] " + path_ + ": " + within_; }
  /// All of them as JSON.
  const nlohmann::json& object() const { return object_; }
  /// The same as settings of a configuration class of transformers, that of `model_type`: each may
  /// have any of the names that the class knows, is looked up by any of them, and has the class's
  /// default. Throws c10::ValueError for two names of one setting with different values.
  Settings of(std::string_view model_type) const;
  /// The key of the setting `name` in the file; where it is absent, the name that the class itself
  /// has for it.
  std::string key(const std::string& name) const {
    return std::string(class_->key_in(object_, name));
  }
  /// The settings in the object `name`; messages call them `name.setting`.
  Settings inside(const char* name) const;
  /// Those of the model in `name`, `text_config` or `vision_config`, of a composite model. Files of
  /// older releases have them in `text_config_dict`, which replaces the other. Where the file has
  /// neither them nor their `model_type`, those are what the class gives to this part.
  Settings part(const std::string& name) const;
  /// Whether there is such a part.
  bool has_part(const std::string& name) const;
  bool has(const char* name) const { return !value(name).is_null(); }

  bool flag(const char* name, std::optional<bool> fallback = std::nullopt) const;
  double real(const char* name, std::optional<double> fallback = std::nullopt) const;
  std::string text(const char* name, std::optional<std::string> fallback = std::nullopt) const;
  /// An integer from `least` to `most`.
  int64_t whole(const char* name, int64_t least, int64_t most) const;
  int64_t whole(const char* name, int64_t fallback, int64_t least, int64_t most) const;

  /// Names of one setting in different classes, as models/hf/setting_names.h has them.
  using Names = std::span<const char* const>;
  /// That of this class; null if it has no such setting.
  const char* name_of(Names names) const;
  /// Its value, or the fallback.
  bool flag(Names names, bool fallback) const;
  int64_t whole(Names names, int64_t fallback, int64_t least, int64_t most) const;
  /// A number that is not negative, and one in [0, 1).
  double not_negative(Names names, double fallback) const;
  double probability(Names names, double fallback) const;

  /// One or several ids, each in [0, vocab).
  std::vector<int64_t> tokens(const char* name, int64_t vocab) const;
  /// The same for a list of lists, each of which must contain one id.
  std::vector<int64_t> single_tokens(const char* name, int64_t vocab) const;

  /// What `make` returns; its c10::ValueError gets the place of these settings in front.
  template <typename Make>
  auto placing_errors(const Make& make) const {
    try {
      return make();
    } catch (const c10::ValueError& error) {
      TORCH_CHECK_VALUE(false, where(), error.what_without_backtrace());
    }
  }

  /// The value itself; null if it is absent and the class has no default.
  const nlohmann::json& value(const char* name) const;
  /// Throws an error that `name` violates `rule` ("must be ..."), with its value.
  [[noreturn]] void refuse(const char* name, const std::string& rule) const;

 private:
  bool falls_back(const char* name) const;
  std::string place_of_part(const std::string& name) const;
  const hf::ConfigClass& own_class() const;  // that the file's model_type has
  Settings(std::string caller, std::string path, std::string within, nlohmann::json object)
      : caller_(std::move(caller)),
        path_(std::move(path)),
        within_(std::move(within)),
        object_(std::move(object)) {}

  std::string caller_, path_;
  std::string within_;  // the objects around these settings, with a dot at the end
  nlohmann::json object_;
  const hf::ConfigClass* class_ = &hf::ConfigClass::of("");
};

}  // namespace posenc
