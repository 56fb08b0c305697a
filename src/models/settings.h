#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/hf/attribute_map.h"

namespace posenc {

/// Settings from a JSON file in a model's folder, looked up by name. A setting that is absent or
/// null has its fallback. Errors name the public function, the file, the setting and the rule:
/// c10::ValueError, and WeightsError for a file that cannot be read.
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
  /// have any of the names that the class knows, and is looked up by any of them. Throws
  /// c10::ValueError for two names of one setting with different values.
  Settings of(std::string_view model_type) const;
  /// The key of the setting `name` in the file; where it is absent, the name that the class itself
  /// has for it.
  std::string key(const std::string& name) const {
    return std::string(map_->key_in(object_, name));
  }
  /// The settings in the object `name`; messages call them `name.setting`.
  Settings inside(const char* name) const;
  /// Those of the model in `name`, `text_config` or `vision_config`, of a composite model. Files of
  /// older releases have them in `text_config_dict`, which replaces the other. None: all defaults.
  Settings part(const std::string& name) const;
  /// Whether there are settings of such a part.
  bool has_part(const std::string& name) const;
  bool has(const char* name) const { return !value(name).is_null(); }

  bool flag(const char* name, bool fallback) const;
  double real(const char* name, double fallback) const;
  std::string text(const char* name, const std::string& fallback) const;
  /// An integer from `least` to `most`.
  int64_t whole(const char* name, int64_t fallback, int64_t least, int64_t most) const;
  /// One or several ids, each in [0, vocab).
  std::vector<int64_t> tokens(const char* name, int64_t vocab) const;
  /// The same for a list of lists, each of which must contain one id.
  std::vector<int64_t> single_tokens(const char* name, int64_t vocab) const;

  /// The value itself, null if absent.
  const nlohmann::json& value(const char* name) const;
  /// Throws an error that `name` violates `rule` ("must be ..."), with its value.
  [[noreturn]] void refuse(const char* name, const std::string& rule) const;

 private:
  std::string place_of_part(const std::string& name) const;
  Settings(std::string caller, std::string path, std::string within, nlohmann::json object)
      : caller_(std::move(caller)),
        path_(std::move(path)),
        within_(std::move(within)),
        object_(std::move(object)) {}

  std::string caller_, path_;
  std::string within_;  // the objects around these settings, with a dot at the end
  nlohmann::json object_;
  const hf::AttributeMap* map_ = &hf::AttributeMap::of("");
};

}  // namespace posenc
