#include "models/save/input_files.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "core/named.h"

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

// Their paths in a folder, sorted; none where there is no such folder.
std::vector<std::string> input_files_in(const std::string& folder) {
  std::vector<std::string> found;
  if (folder.empty()) return found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_named = detail::find_named(kInputFiles, name) != nullptr ||
                          name.ends_with(".tiktoken") ||
                          (name.starts_with("tokenizer.") && name.ends_with(".json"));
    if (is_named && entry.is_regular_file(error)) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

void copy_input_files(PretrainedFolder& contents, const std::string& folder,
                      const std::optional<std::string>& chosen, const std::string& default_folder) {
  const std::string& source = chosen.value_or(default_folder);
  auto files = input_files_in(source);
  TORCH_CHECK_VALUE(!chosen || chosen->empty() || !files.empty(),
                    "[save_pretrained] SavePretrainedOptions::tokenizer_from must be a folder with "
                    "the files of a tokenizer. Got ",
                    *chosen);
  std::error_code unknown;
  if (files.empty() || fs::equivalent(source, folder, unknown)) return;
  const auto own = input_files_in(folder);
  if (!chosen && !own.empty()) return;
  contents.copied = std::move(files);
  for (const std::string& path : own)
    contents.removed.push_back(fs::path(path).filename().string());
}

}  // namespace posenc
