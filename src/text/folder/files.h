#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace posenc::text {

/// Settings in the order of their file, which is that of transformers' dictionaries.
using Settings = nlohmann::ordered_json;

/// The files of a model's folder.
class FolderFiles {
 public:
  /// Throws TokenizerError unless it is a folder.
  explicit FolderFiles(std::string folder);

  const std::string& folder() const { return folder_; }
  std::string path(std::string_view name) const;
  bool has(std::string_view name) const;
  /// The whole of a file. Throws TokenizerError.
  std::string read(std::string_view name) const;
  /// The object in a JSON file, and an empty one where there is no such file. Throws
  /// TokenizerError.
  Settings settings(std::string_view name) const;

 private:
  std::string folder_;
};

/// A value in messages: its text, shortened.
std::string shown(const Settings& value);

/// The string `name` of an object; nothing where it is missing or null. Throws TokenizerError for
/// another type.
std::optional<std::string> string_of(const Settings& object, const char* name);

/// Throws the TokenizerError "NAME: must RULE. Got VALUE".
[[noreturn]] void refuse(std::string_view name, std::string_view rule, std::string_view value);

}  // namespace posenc::text
