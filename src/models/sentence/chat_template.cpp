// The chat template of a tokenizer.

#include <c10/util/Exception.h>

#include <filesystem>
#include <map>
#include <system_error>

#include "models/sentence/transformer_settings.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostTemplate = 1'000'000;  // bytes

// The templates of a folder by name. Files come before tokenizer_config.json.
struct Templates {
  std::map<std::string, std::string> by_name;
  bool is_one = true;  // whether the tokenizer has one, and no names
};

void add_file(const char* caller, const fs::path& file, const std::string& name,
              Templates& templates) {
  templates.by_name[name] = io::in_context(
      caller, file.string(), [&] { return io::read_text(file.string(), kMostTemplate); });
}

Templates templates_in(const char* caller, const fs::path& folder) {
  Templates templates;
  if (const fs::path file = folder / "chat_template.jinja"; io::may_exist(file.string()))
    add_file(caller, file, "default", templates);
  std::error_code error;
  for (const auto& one : fs::directory_iterator(folder / kChatTemplates, error)) {
    if (one.path().extension() != ".jinja") continue;
    add_file(caller, one.path(), one.path().stem().string(), templates);
    templates.is_one = false;
  }
  if (!templates.by_name.empty()) return templates;
  const char* const name = "chat_template";
  const Settings config = settings_or_none(caller, (folder / "tokenizer_config.json").string());
  if (!config.has(name)) return templates;
  if (!config.value(name).is_array()) {
    templates.by_name["default"] = config.text(name);
    return templates;
  }
  templates.is_one = false;
  for (const auto& one : config.value(name)) {
    const auto text = [&](const char* key) {
      const bool has = one.is_object() && one.contains(key) && one.at(key).is_string();
      if (!has) config.refuse(name, "must be templates that have a name and a template");
      return one.at(key).get<std::string>();
    };
    templates.by_name[text("name")] = text("template");
  }
  return templates;
}

}  // namespace

std::optional<std::string> chat_template_source(const char* caller, const fs::path& folder,
                                                const std::string& name) {
  const Templates templates = templates_in(caller, folder);
  const auto found = templates.by_name.find(name);
  if (found == templates.by_name.end()) return std::nullopt;
  return found->second;
}

std::optional<sentence::ChatTemplate> chat_template_in(const char* caller, const fs::path& folder,
                                                       const std::string& format) {
  const Templates templates = templates_in(caller, folder);
  if (templates.by_name.empty()) return std::nullopt;
  const auto found = templates.by_name.find("default");
  TORCH_CHECK_VALUE(found != templates.by_name.end(), "[", caller, "] ", folder.string(),
                    ": one of its chat templates must have the name default");
  sentence::ChatTemplate chat = {found->second};
  const auto has = [&](const char* text) { return chat.source.find(text) != std::string::npos; };
  const bool names_types = has("content[0]") || has(".type") || has("'type'") || has("\"type\"") ||
                           has("message.content[");
  chat.is_structured =
      format == "structured" || (format == "auto" && (!templates.is_one || names_types));
  return chat;
}

void check_no_chat_template(const char* caller, const fs::path& folder) {
  TORCH_CHECK_VALUE(!chat_template_in(caller, folder, "auto"), "[", caller, "] ", folder.string(),
                    ": the tokenizer must not have a chat template without a modules.json: "
                    "sentence-transformers puts each text into it, which posenc does not");
}

}  // namespace posenc
