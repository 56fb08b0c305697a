#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace posenc {

/// The settings in a JSON file of a model's folder, each of which is asked for by name. A setting
/// that is absent or null has its fallback. Errors name the file, the setting and the rule:
/// c10::ValueError, and WeightsError for a file that cannot be read.
class Settings {
 public:
  explicit Settings(std::string path);
  /// Of a file that a folder may lack: no setting at all.
  static Settings none(std::string path) { return Settings(std::move(path), nlohmann::json()); }

  const std::string& path() const { return path_; }
  bool has(const char* name) const { return !value(name).is_null(); }

  bool flag(const char* name, bool fallback) const;
  double real(const char* name, double fallback) const;
  std::string text(const char* name, const std::string& fallback) const;
  /// A whole number from `least` to `most`.
  int64_t whole(const char* name, int64_t fallback, int64_t least, int64_t most) const;
  /// One id or several, each in [0, vocab).
  std::vector<int64_t> tokens(const char* name, int64_t vocab) const;
  /// The same of lists of lists, each of which has to hold one id.
  std::vector<int64_t> single_tokens(const char* name, int64_t vocab) const;

  /// The value itself; null where it is absent.
  const nlohmann::json& value(const char* name) const;
  /// Throws: `name` "must be ..."; says what it is.
  [[noreturn]] void refuse(const char* name, const std::string& rule) const;

 private:
  Settings(std::string path, nlohmann::json object)
      : path_(std::move(path)), object_(std::move(object)) {}

  std::string path_;
  nlohmann::json object_;
};

}  // namespace posenc
