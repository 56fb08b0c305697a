#include "tokenizers/folder/files.h"

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "base/model_name.h"
#include "base/platform/file.h"
#include "base/text.h"

namespace posenc::text {
namespace {

constexpr uint64_t kMostFileBytes = uint64_t{1} << 31;

std::string read_open_file(const platform::Descriptor& file) {
  const uint64_t size = platform::stamp_of(file).size;
  if (size > kMostFileBytes)
    refuse("its size", "be at most 2 GiB", std::to_string(size) + " bytes",
           TokenizerErrorCode::Limit);
  std::string text(size, '\0');
  if (platform::read_at(file, 0, text.data(), text.size()) != text.size())
    refuse("it", "keep its size while it is read", "an early end", TokenizerErrorCode::File);
  return text;
}

}  // namespace

std::string read_file(const std::string& path) {
  try {
    return read_open_file(platform::open_to_read(path));
  } catch (const platform::FileError& error) {
    throw TokenizerError(error.what(), TokenizerErrorCode::File).in_file(path);
  } catch (const TokenizerError& error) {
    throw error.in_file(path);
  }
}

FolderFiles::FolderFiles(std::string folder) : folder_(std::move(folder)) {
  std::error_code failure;
  if (!platform::may_exist(folder_) || !std::filesystem::is_directory(folder_, failure)) {
    const std::string remedy = base::how_to_get_model(folder_);
    throw TokenizerError("must be a folder on this machine" + (remedy.empty() ? "" : "; " + remedy),
                         TokenizerErrorCode::File)
        .in_file(folder_);
  }
}

FolderFiles::FolderFiles(FilesInMemory files) : files_(std::move(files)) {
  for (const auto& [name, bytes] : files_) {
    if (in_memory(name) != &bytes)
      refuse("its files", "have names of their own", io::in_quotes(name) + " twice");
  }
}

const std::string_view* FolderFiles::in_memory(std::string_view name) const {
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [&](const auto& file) { return file.first == name; });
  return found == files_.end() ? nullptr : &found->second;
}

std::string FolderFiles::path(std::string_view name) const {
  return (std::filesystem::path(folder_) / name).string();
}

bool FolderFiles::has(std::string_view name) const {
  if (folder_.empty()) return in_memory(name) != nullptr;
  std::error_code failure;
  return std::filesystem::is_regular_file(path(name), failure);
}

std::string FolderFiles::read(std::string_view name) const {
  if (const std::string_view* const bytes = in_memory(name)) return std::string(*bytes);
  return read_file(path(name));
}

Settings FolderFiles::settings(std::string_view name) const {
  if (!has(name)) return Settings::object();
  try {
    Settings value = base::json_tree<Settings>(read(name), "its settings");
    if (!value.is_object()) refuse("it", "be a JSON object", shown(value));
    return value;
  } catch (const base::JsonError& error) {
    using Kind = base::JsonError::Kind;
    throw TokenizerError(error.what(), error.kind() == Kind::LimitExceeded
                                           ? TokenizerErrorCode::Limit
                                           : TokenizerErrorCode::Format)
        .in_file(path(name));
  } catch (const TokenizerError& error) {
    throw error.in_file(path(name));
  }
}

std::string shown(const Settings& value) {
  constexpr std::size_t kMost = 120;  // in bytes
  std::string text = value.dump(-1, ' ', true, Settings::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

std::optional<std::string> string_of(const Settings& object, const char* name) {
  return SettingFields(object).optional_string(name);
}

void SettingFields::refuse(const char* field, const std::string& rule) const {
  text::refuse(field, "be " + rule, shown(at(field)));
}

void refuse(std::string_view name, std::string_view rule, std::string_view value,
            TokenizerErrorCode code) {
  std::string reason(name);
  throw TokenizerError(reason.append(": must ").append(rule).append(". Got ").append(value), code);
}

}  // namespace posenc::text
