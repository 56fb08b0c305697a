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
#include "models/sentence/transformer_settings.h"
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

WeightsError unreadable_folder(const fs::path& folder, const std::error_code& error) {
  return WeightsError(WeightsErrorCode::Io, "cannot be copied: " + error.message())
      .in_file(folder.string());
}

std::vector<std::string> files_in(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  const auto add = [&](const fs::path& inner, std::string_view ending) {
    for (const auto& entry : fs::directory_iterator(folder / inner, error)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file() && name.ends_with(ending))
        names.push_back((inner / name).generic_string());
    }
  };
  add("", "");
  std::error_code unknown;
  if (!error && fs::is_directory(folder / kChatTemplates, unknown)) add(kChatTemplates, ".jinja");
  std::sort(names.begin(), names.end());
  return names;
}

bool is_weights(const std::string& name) {
  return std::any_of(std::begin(kWeightsEndings), std::end(kWeightsEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

std::string path_of_model(const std::string& folder, const std::string& inner) {
  return inner.empty() ? folder : (fs::path(folder) / inner).string();
}

std::string in_folder(const std::string& inner, const std::string& name) {
  return (fs::path(inner) / name).generic_string();
}

std::set<std::string> stage_folders(const char* caller, const SentenceModules& modules) {
  std::set<std::string> paths;
  for (const SentenceModule& stage : modules.stages) {
    paths.insert(stage.path);
    if (!stage.is_router()) continue;
    for (const auto& route : read_router(caller, modules, stage).routes)
      for (const SentenceModule& own : route.stages) paths.insert(own.path);
  }
  return paths;
}

std::string folder_within(const SentenceModules& modules, const SentenceRoute& route) {
  const std::string inner =
      fs::path(route.encoder).lexically_relative(modules.folder).generic_string();
  return inner == "." ? "" : inner;
}

FolderParts parts_of(const char* caller, const std::string& folder, const std::string& base) {
  const SentenceKind kind = sentence_kind(caller, folder, base);
  const bool is_colbert = kind == SentenceKind::MultiVector;
  if (!has_modules(folder)) return {{{"", !is_colbert}}, {}, is_colbert};
  const SentenceModules modules = checked_modules(caller, folder);
  FolderParts parts = {{}, stage_folders(caller, modules)};
  const bool has_routes =
      std::any_of(modules.stages.begin(), modules.stages.end(),
                  [](const SentenceModule& stage) { return stage.is_router(); });
  bool is_static = modules.stages.front().kind == "StaticEmbedding";
  if (kind == SentenceKind::Sparse || has_routes) {
    for (const SentenceRoute& route : read_sentence_folder(folder, kind, base).routes) {
      if (has_layers(route.first))
        parts.models.emplace(folder_within(modules, route),
                             route.first == sentence::FirstStage::MaskedHead);
      is_static |= route.first == sentence::FirstStage::StaticEmbedding;
    }
  } else if (!is_static) {
    parts.models.emplace(modules.stages.front().path, kind == SentenceKind::CrossEncoder);
  }
  TORCH_CHECK_VALUE(
      !parts.models.empty(), "[", caller, "] ", folder, ": the model must have layers. Got ",
      is_static ? "a static embedding, which is a table" : "a table of weights of tokens");
  for (const auto& [inner, uses_head] : parts.models) parts.stages.erase(inner);
  parts.stages.erase("");
  return parts;
}

std::map<std::string, fs::path> files_of_model(const char* caller, const std::string& folder,
                                               const FolderParts& parts, const std::string& base) {
  std::map<std::string, fs::path> files;
  const auto add = [&](const std::string& inner, const fs::path& from, bool with_weights,
                       bool is_base) {
    std::error_code error;
    if (!fs::is_directory(from, error)) return;  // of a stage that has no files
    const auto names = files_in(from, error);
    if (error) throw unreadable_folder(from, error);
    for (const std::string& name : names) {
      const bool is_of_sentences =
          is_base && std::find(std::begin(kOfSentences), std::end(kOfSentences), name) !=
                         std::end(kOfSentences);
      const bool is_head = !is_base && (name == kLexicalHead || name == kTokenHead);
      const bool is_left_out = name.front() == '.' || name == lora::kConfigFile ||
                               is_of_sentences || (!with_weights && !is_head && is_weights(name));
      if (!is_left_out) files.emplace(in_folder(inner, name), from / name);
    }
  };
  const fs::path own = folder;
  for (const std::string& stage : parts.stages) add(stage, own / stage, true, false);
  add("", own, false, false);
  for (const auto& [inner, uses_head] : parts.models) {
    add(inner, own / inner, false, false);
    const std::string whole = path_of_model(folder, inner);
    const std::string model = config_folder(caller, whole, base);
    if (model != whole) add(inner, model, false, true);
  }
  return files;
}

}  // namespace posenc
