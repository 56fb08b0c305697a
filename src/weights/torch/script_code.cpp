#include "weights/torch/script_code.h"

#include <algorithm>
#include <optional>

#include "weights/torch/zip/inflate.h"

namespace posenc::io {
namespace {

// The names in `["weight", "bias", ]`; nullopt if it is not such a list.
std::optional<NameSet> quoted_names(std::string_view list) {
  NameSet names;
  if (!list.starts_with('[') || !list.ends_with(']')) return std::nullopt;
  if (list.find('\\') != list.npos) return std::nullopt;
  list = list.substr(1, list.size() - 2);
  for (;;) {
    const std::size_t begin = list.find('"');
    if (begin == list.npos) return names;
    const std::size_t end = list.find('"', begin + 1);
    if (end == list.npos) return std::nullopt;
    names.emplace(list.substr(begin + 1, end - begin - 1));
    list.remove_prefix(end + 1);
  }
}

bool take_prefix(std::string_view& line, std::string_view prefix) {
  if (!line.starts_with(prefix)) return false;
  line.remove_prefix(prefix.size());
  return true;
}

}  // namespace

NameMap<ScriptClass> script_classes(std::string_view code) {
  NameMap<ScriptClass> classes;
  ScriptClass* current = nullptr;
  while (!code.empty()) {
    const std::size_t end = std::min(code.find('\n'), code.size());
    std::string_view line = code.substr(0, end);
    code.remove_prefix(std::min(end + 1, code.size()));
    if (take_prefix(line, "class ")) {
      const std::size_t name = std::min(line.find_first_of("(:"), line.size());
      current = &classes[std::string(line.substr(0, name))];
      current->is_module = line.substr(name).starts_with("(Module)");
    } else if (current != nullptr && take_prefix(line, "  __parameters__ = ")) {
      current->parameters = quoted_names(line);
    } else if (current != nullptr && take_prefix(line, "  __buffers__ = ")) {
      current->buffers = quoted_names(line);
    }
  }
  return classes;
}

const ScriptClass* ScriptCode::find(const std::string& qualified_name) {
  const std::size_t dot = qualified_name.rfind('.');
  if (dot == std::string::npos) return nullptr;
  const Classes& classes = file(qualified_name.substr(0, dot));
  const auto found = classes.find(qualified_name.substr(dot + 1));
  return found == classes.end() ? nullptr : &found->second;
}

const ScriptCode::Classes& ScriptCode::file(const std::string& module) {
  const auto [found, added] = files_.try_emplace(module);
  if (!added) return found->second;
  std::string name = "code/" + module + ".py";
  std::replace(name.begin() + 5, name.end() - 3, '.', '/');
  const ZipRecord* record = archive_.find(name);
  if (record == nullptr || std::max(record->bytes, record->packed) > left_) return found->second;
  left_ -= std::max(record->bytes, record->packed);
  found->second =
      script_classes(inflate(archive_.index(), *record, record->bytes + record->packed));
  return found->second;
}

}  // namespace posenc::io
