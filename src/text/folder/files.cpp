#include "text/folder/files.h"

#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include "platform/file.h"
#include "posenc/text/error.h"

namespace posenc::text {
namespace {

constexpr uint64_t kMostFileBytes = uint64_t{1} << 31;

std::string read_file(const std::string& path) {
  const platform::Descriptor file = platform::open_to_read(path);
  const uint64_t size = platform::stamp_of(file).size;
  if (size > kMostFileBytes)
    refuse("its size", "be at most 2 GiB", std::to_string(size) + " bytes");
  std::string text(size, '\0');
  if (platform::read_at(file, 0, text.data(), text.size()) != text.size()) {
    refuse("it", "keep its size while it is read", "an early end");
  }
  return text;
}

// Whether no value lies in more than 128 others: what is nested deeper would overflow the stack
// where it is shown.
bool is_shallow(std::string_view json) {
  constexpr int kDeepest = 128;
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_string && c == '\\') {
      ++at;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      if (++depth > kDeepest) return false;
    } else if (!in_string && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return true;
}

// Refuses an object that has a name twice, while it is parsed.
class NamesOnce {
 public:
  bool operator()(int, Settings::parse_event_t event, const Settings& parsed) {
    using Event = Settings::parse_event_t;
    if (event == Event::object_start) names_->emplace_back();
    if (event == Event::object_end) names_->pop_back();
    if (event == Event::key && !names_->back().insert(parsed.get<std::string>()).second)
      refuse("it", "have each name once", shown(parsed) + " twice");
    return true;
  }

 private:
  // Of the objects around a value; shared, as the parser copies this.
  std::shared_ptr<std::vector<std::set<std::string>>> names_ =
      std::make_shared<std::vector<std::set<std::string>>>();
};

}  // namespace

FolderFiles::FolderFiles(std::string folder) : folder_(std::move(folder)) {
  std::error_code failure;
  if (!std::filesystem::is_directory(folder_, failure)) {
    throw TokenizerError("must be a folder. Got no folder").in_file(folder_);
  }
}

std::string FolderFiles::path(std::string_view name) const {
  return (std::filesystem::path(folder_) / name).string();
}

bool FolderFiles::has(std::string_view name) const {
  std::error_code failure;
  return std::filesystem::is_regular_file(path(name), failure);
}

std::string FolderFiles::read(std::string_view name) const {
  try {
    return read_file(path(name));
  } catch (const platform::FileError& error) {
    throw TokenizerError(error.what()).in_file(path(name));
  } catch (const TokenizerError& error) {
    throw error.in_file(path(name));
  }
}

Settings FolderFiles::settings(std::string_view name) const {
  if (!has(name)) return Settings::object();
  const std::string text = read(name);
  try {
    if (!is_shallow(text)) refuse("it", "have at most 128 values within each other", "more");
    Settings value = Settings::parse(text, NamesOnce());
    if (!value.is_object()) refuse("it", "be a JSON object", shown(value));
    return value;
  } catch (const Settings::parse_error& error) {
    throw TokenizerError(std::string("must be JSON. Got ") + error.what()).in_file(path(name));
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
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return std::nullopt;
  if (!found->is_string()) refuse(name, "be a string", shown(*found));
  return found->get<std::string>();
}

void refuse(std::string_view name, std::string_view rule, std::string_view value) {
  std::string reason(name);
  throw TokenizerError(reason.append(": must ").append(rule).append(". Got ").append(value));
}

}  // namespace posenc::text
