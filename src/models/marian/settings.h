#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace posenc {

/// Settings from a JSON file in a model's folder, looked up by name. A setting that is absent or
/// null has its fallback. Errors name the file, the setting and the rule: c10::ValueError, and
/// WeightsError for a file that cannot be read.
class Settings {
 public:
  explicit Settings(std::string path);
  /// No settings, for an optional file that the folder does not have.
  static Settings none(std::string path) { return Settings(std::move(path), nlohmann::json()); }

  const std::string& path() const { return path_; }
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
  Settings(std::string path, nlohmann::json object)
      : path_(std::move(path)), object_(std::move(object)) {}

  std::string path_;
  nlohmann::json object_;
};

}  // namespace posenc
