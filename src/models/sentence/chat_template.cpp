// The chat template of a tokenizer.

#include <c10/util/Exception.h>

#include "models/sentence/transformer_settings.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostTemplate = 1'000'000;  // bytes

}  // namespace

std::optional<sentence::ChatTemplate> chat_template_in(const char* caller, const fs::path& folder,
                                                       const std::string& format) {
  const char* const name = "chat_template";
  const std::string file = (folder / "chat_template.jinja").string();
  const Settings config = settings_or_none(caller, (folder / "tokenizer_config.json").string());
  sentence::ChatTemplate chat;
  bool is_one = true;  // of several, sentence-transformers does not look for the format
  if (io::may_exist(file)) {
    chat.source = io::in_context(caller, file, [&] { return io::read_text(file, kMostTemplate); });
  } else if (!config.has(name)) {
    return std::nullopt;
  } else if (config.value(name).is_array()) {
    is_one = false;
    for (const auto& one : config.value(name))
      if (one.is_object() && one.value("name", "") == "default")
        chat.source = one.value("template", "");
    if (chat.source.empty()) config.refuse(name, "must have a template of the name default");
  } else {
    chat.source = config.text(name);
  }
  const auto has = [&](const char* text) { return chat.source.find(text) != std::string::npos; };
  const bool names_types = has("content[0]") || has(".type") || has("'type'") || has("\"type\"") ||
                           has("message.content[");
  chat.is_structured = format == "structured" || (format == "auto" && (!is_one || names_types));
  return chat;
}

void check_no_chat_template(const char* caller, const fs::path& folder) {
  TORCH_CHECK_VALUE(!chat_template_in(caller, folder, "auto"), "[", caller, "] ", folder.string(),
                    ": the tokenizer must not have a chat template without a modules.json: "
                    "sentence-transformers puts each text into it, which posenc does not");
}

}  // namespace posenc
