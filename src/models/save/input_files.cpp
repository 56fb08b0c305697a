#include "models/save/input_files.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "core/named.h"
#include "models/save/copied_files.h"
#include "models/sentence/transformer_settings.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

// The `vocab_files_names` of the tokenizers of transformers 5.23, what all of them have beside, and
// the settings of processors.
constexpr std::string_view kInputFiles[] = {
    "added_tokens.json",
    "bpe.codes",
    "byte_maps.json",
    "chat_template.jinja",
    "chat_template.json",
    "dict.txt",
    "emoji.json",
    "entity_vocab.json",
    "merges.txt",
    "normalizer.json",
    "preprocessor_config.json",
    "processor_config.json",
    "prophetnet.tokenizer",
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "source.spm",
    "special_tokens_map.json",
    "spiece.model",
    "spm.model",
    "spm_char.model",
    "target.spm",
    "target_vocab.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab-src.json",
    "vocab-tgt.json",
    "vocab.json",
    "vocab.txt",
    "word_pronunciation.json",
    "word_shape.json",
};

// Their names in a folder, with those of chat templates in it; none where there is no such folder.
std::vector<std::string> input_files_in(const std::string& folder) {
  if (folder.empty()) return {};
  std::error_code error;
  std::vector<std::string> names = files_in(folder, error);
  std::erase_if(names, [](const std::string& name) {
    return detail::find_named(kInputFiles, name) == nullptr && !name.ends_with(".tiktoken") &&
           !(name.starts_with("tokenizer.") && name.ends_with(".json")) &&
           !name.starts_with(kChatTemplates);
  });
  return names;
}

}  // namespace

void copy_input_files(PretrainedFolder& contents, const std::string& folder,
                      const std::optional<std::string>& chosen, const std::string& default_folder) {
  const std::string& source = chosen.value_or(default_folder);
  const auto files = input_files_in(source);
  TORCH_CHECK_VALUE(!chosen || chosen->empty() || !files.empty(),
                    "[save_pretrained] SavePretrainedOptions::tokenizer_from must be a folder with "
                    "the files of a tokenizer. Got ",
                    *chosen);
  std::error_code unknown;
  if (files.empty() || fs::equivalent(source, folder, unknown)) return;
  const auto own = input_files_in(folder);
  if (!chosen && !own.empty()) return;
  for (const std::string& name : files)
    contents.copied.emplace(name, (fs::path(source) / name).string());
  contents.removed.insert(contents.removed.end(), own.begin(), own.end());
}

}  // namespace posenc
