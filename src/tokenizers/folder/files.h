#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/json_fields.h"

namespace posenc::text {

/// The whole of a file. Throws TokenizerError.
std::string read_file(const std::string& path);

/// Files with their names, whose bytes have to live while they are read.
using FilesInMemory = std::vector<std::pair<std::string, std::string_view>>;

/// Settings in the order of their file, which is that of transformers' dictionaries.
using Settings = nlohmann::ordered_json;

/// The files of a model's folder.
class FolderFiles {
 public:
  /// Throws TokenizerError unless it is a folder.
  explicit FolderFiles(std::string folder);
  /// Files in memory as a folder. Throws TokenizerError for a name that occurs twice.
  explicit FolderFiles(FilesInMemory files);

  /// Its path; empty for files in memory.
  const std::string& folder() const { return folder_; }
  /// What errors call a file: its path, or its name in memory.
  std::string path(std::string_view name) const;
  bool has(std::string_view name) const;
  /// The whole of a file. Throws TokenizerError.
  std::string read(std::string_view name) const;
  /// The object in a JSON file, and an empty one where there is no such file. Throws
  /// TokenizerError.
  Settings settings(std::string_view name) const;

 private:
  const std::string_view* in_memory(std::string_view name) const;

  std::string folder_;  // empty for files in memory
  FilesInMemory files_;
};

/// A value in messages: its text, shortened.
std::string shown(const Settings& value);

/// The string `name` of an object; nothing where it is missing or null. Throws TokenizerError for
/// another type.
std::optional<std::string> string_of(const Settings& object, const char* name);

/// Settings of a folder, checked: their errors name the setting alone.
class SettingFields : public JsonFields<SettingFields, Settings> {
 public:
  using JsonFields::JsonFields;
  [[noreturn]] void refuse(const char* field, const std::string& rule) const;
};

/// Throws the TokenizerError "NAME: must RULE. Got VALUE".
[[noreturn]] void refuse(std::string_view name, std::string_view rule, std::string_view value,
                         TokenizerErrorCode code = TokenizerErrorCode::Format);

}  // namespace posenc::text
