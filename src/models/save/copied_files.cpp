#include "models/save/copied_files.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <system_error>

#include "models/lora/adapted_folder.h"
#include "models/lora/config.h"
#include "models/sentence/modules.h"
#include "models/sentence/stage_settings.h"
#include "posenc/models/sentence_folder.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightsEndings[] = {".safetensors", ".bin",  ".pt",        ".pth",
                                                ".ckpt",        ".h5",   ".onnx",      ".msgpack",
                                                ".ot",          ".gguf", ".index.json"};
// What sentence-transformers reads beside the model of another folder.
constexpr std::string_view kOfSentences[] = {"modules.json", "config_sentence_transformers.json",
                                             "sentence_bert_config.json"};

}  // namespace

bool is_weights(const std::string& name) {
  return std::any_of(std::begin(kWeightsEndings), std::end(kWeightsEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

std::string in_folder(const std::string& inner, const std::string& name) {
  return (fs::path(inner) / name).generic_string();
}

FolderParts parts_of(const char* caller, const std::string& folder, const std::string& base) {
  const SentenceKind kind = sentence_kind(caller, folder, base);
  FolderParts parts;
  if (!has_modules(folder)) {
    parts.has_projection = parts.is_sentence_model = kind == SentenceKind::MultiVector;
    return parts;
  }
  const auto stages = checked_modules(caller, folder).stages;
  TORCH_CHECK_VALUE(stages.front().kind != "StaticEmbedding", "[", caller, "] ", folder,
                    ": the model must have layers. Got a static embedding, which is a table");
  for (const SentenceModule& stage : stages)
    TORCH_CHECK_VALUE(!stage.is_router(), "[", caller, "] ", folder,
                      ": the model must have one route. Got a Router");
  parts.inner = stages.front().path;
  for (std::size_t i = 1; i < stages.size(); ++i)
    if (!stages[i].path.empty()) parts.stages.insert(stages[i].path);
  parts.is_sentence_model = kind != SentenceKind::CrossEncoder;
  if (kind == SentenceKind::Sparse) {
    const auto first = read_sentence_folder(folder, kind, base).route().first;
    TORCH_CHECK_VALUE(first != sentence::FirstStage::Tokens, "[", caller, "] ", folder,
                      ": the model must have layers. Got a table of weights of tokens");
    parts.is_sentence_model = first != sentence::FirstStage::MaskedHead;
  }
  return parts;
}

std::map<std::string, fs::path> files_of_model(const char* caller, const std::string& folder,
                                               const FolderParts& parts, const std::string& base) {
  std::map<std::string, fs::path> files;
  const auto add = [&](const std::string& inner, const fs::path& from, bool with_weights,
                       bool is_base) {
    std::error_code unknown;
    if (!fs::is_directory(from, unknown)) return;  // of a stage that has no files
    for (const auto& entry : fs::directory_iterator(from)) {
      const std::string name = entry.path().filename().string();
      const bool is_of_sentences =
          is_base && std::find(std::begin(kOfSentences), std::end(kOfSentences), name) !=
                         std::end(kOfSentences);
      const bool is_head = !is_base && (name == kLexicalHead || name == kTokenHead);
      const bool is_left_out = name.front() == '.' || name == lora::kConfigFile ||
                               is_of_sentences || (!with_weights && !is_head && is_weights(name));
      if (entry.is_regular_file() && !is_left_out)
        files.emplace(in_folder(inner, name), entry.path());
    }
  };
  const fs::path own = folder;
  for (const std::string& stage : parts.stages) add(stage, own / stage, true, false);
  add("", own, false, false);
  add(parts.inner, own / parts.inner, false, false);
  const std::string inner = parts.inner.empty() ? folder : (own / parts.inner).string();
  const std::string model = config_folder(caller, inner, base);
  if (model != inner) add(parts.inner, model, false, true);
  return files;
}

}  // namespace posenc
