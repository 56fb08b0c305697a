#include <algorithm>
#include <string_view>

#include "tokenizers/folder/class_builder.h"
#include "tokenizers/folder/components.h"

namespace posenc::text {
namespace {

constexpr std::size_t kLargeVocabulary = 100'000;
constexpr const char* kMistralWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Whether a version of transformers comes before 5.0.0; those that lead to it do.
bool is_before_5(std::string_view version) {
  if (version.empty() || version[0] < '0' || version[0] > '9') return false;
  const std::size_t end = std::min(version.find_first_not_of("0123456789"), version.size());
  if (end == 1 && version[0] < '5') return true;
  if (!version.starts_with("5.0.0")) return false;
  const std::string_view rest = version.substr(5);
  return rest.starts_with(".dev") || rest.starts_with("rc") || rest.starts_with("a") ||
         rest.starts_with("b");
}

bool is_mistral_of_before(const FolderFiles& files) {
  if (!files.has("config.json")) return false;
  const Settings config = files.settings("config.json");
  const std::string version = string_of(config, "transformers_version").value_or("");
  if (!version.empty() && !is_before_5(version)) return false;
  const std::optional<std::string> type = string_of(config, "model_type");
  constexpr std::string_view kTypes[] = {"mistral", "mistral3", "voxtral", "ministral", "pixtral"};
  return !type || std::ranges::count(kTypes, *type) > 0;
}

}  // namespace

void fix_mistral_regex(ClassBuilder& builder) {
  nlohmann::json& present = builder.definition.pre_tokenizer;
  const Settings* const flag = builder.arguments.find("fix_mistral_regex");
  const bool is_asked = flag && *flag == true;
  if (!is_asked || present.is_null() || builder.vocabulary_size() <= kLargeVocabulary ||
      !is_mistral_of_before(builder.files()))
    return;
  const auto words = components::split({{"Regex", kMistralWords}}, "Isolated", false);
  const std::string type = present.value("type", "");
  if (type == "Sequence" && !present["pretokenizers"].empty()) {
    present["pretokenizers"][0] = words;
    return;
  }
  if (type == "Metaspace") present = components::byte_level(false, true, false);
  present = components::pre_tokenizers({words, present});
}

}  // namespace posenc::text
