// save_sentence_model().

#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "io/base/file.h"
#include "models/pretrained/write_folder.h"
#include "models/sentence/pooling.h"
#include "models/sentence/same_stages.h"
#include "models/sentence/stage_settings.h"
#include "posenc/io/save.h"
#include "posenc/models/save_pretrained.h"
#include "posenc/models/save_sentence_model.h"
#include "posenc/models/sentence_folder.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSaveModel = "save_sentence_model";
constexpr const char* kModules = "modules.json";

// What a folder of sentence-transformers has besides weights.
const char* const kCopied[] = {".json", ".txt",   ".model", ".jinja",
                               ".md",   ".codes", ".bpe",   ".tiktoken"};

// The model that is saved, and where its parts are in the source.
struct SavedModel {
  SentenceModules modules;
  std::vector<SentenceStageSettings> stages;  // after the first
};

SavedModel source_of(const SentenceStages& stages, const std::string& source) {
  SavedModel model = {sentence_modules(kSaveModel, source), {}};
  TORCH_CHECK_VALUE(model.modules.is_listed || !has_modules(source), "[", kSaveModel,
                    "] source must be no cross-encoder, which save_pretrained() saves. Got ",
                    source);
  const SentenceModule& first = model.modules.stages.front();
  TORCH_CHECK_VALUE(first.kind == "Transformer", "[", kSaveModel,
                    "] source must be a model with an encoder. Got ", first.type);
  model.stages = stages_after_first(kSaveModel, model.modules);
  const auto& own = stages->options.stages();
  TORCH_CHECK_VALUE(own.size() == model.stages.size(), "[", kSaveModel,
                    "] stages must be as many as those of ", source, ", ", model.stages.size(),
                    ". Got ", own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    TORCH_CHECK_VALUE(are_same(own[i], model.stages[i].stage), "[", kSaveModel, "] stage ", i + 1,
                      " must be that of ", source, ". Got one with other options");
  }
  return model;
}

bool is_same_place(const std::string& a, const std::string& b) {
  std::error_code unknown;
  return fs::equivalent(a, b, unknown);
}

bool is_copied(const fs::path& file, bool is_of_encoder) {
  const std::string name = file.filename().string();
  const bool is_index = name.ends_with(".index.json");
  if (is_index || name == kModules || (is_of_encoder && name == "config.json")) return false;
  return std::find(std::begin(kCopied), std::end(kCopied), file.extension().string()) !=
         std::end(kCopied);
}

// Settings that sentence-transformers does not read without a modules.json.
bool is_unread(const fs::path& file) {
  const std::string name = file.filename().string();
  return name == "config_sentence_transformers.json" ||
         (name.starts_with("sentence_") && name.ends_with("_config.json"));
}

// Copies those files of a folder, if there is one, for which `is_wanted` is true.
template <typename Condition>
void copy_files(const fs::path& from, const fs::path& to, const Condition& is_wanted) {
  std::error_code error;
  if (!fs::is_directory(from, error) || is_same_place(from.string(), to.string())) return;
  make_folder(to.string());
  error.clear();
  for (const auto& entry : fs::directory_iterator(from, error)) {
    if (!entry.is_regular_file() || !is_wanted(entry.path())) continue;
    fs::copy_file(entry.path(), to / entry.path().filename(), fs::copy_options::overwrite_existing,
                  error);
    if (error) break;
  }
  if (!error) return;
  throw WeightsError(WeightsErrorCode::Io, "cannot be copied: " + error.message())
      .in_file(from.string());
}

// The stages of an encoder that had none: the pooling that it is given.
nlohmann::json usual_modules(const fs::path& folder, const SavedModel& model,
                             const SentenceStages& stages) {
  const auto& pooling = std::get<sentence::Pooling>(model.stages.front().stage);
  nlohmann::json config = {{"embedding_dimension", stages->options.d_model()},
                           {"include_prompt", true}};
  config["pooling_mode"] = pooling_word(pooling.modes.front());
  make_folder((folder / "1_Pooling").string());
  write_json_file((folder / "1_Pooling" / "config.json").string(), config);
  const std::string package = "sentence_transformers.";
  return {{{"idx", 0},
           {"name", "0"},
           {"path", ""},
           {"type", package + "base.modules.transformer.Transformer"}},
          {{"idx", 1},
           {"name", "1"},
           {"path", "1_Pooling"},
           {"type", package + "sentence_transformer.modules.pooling.Pooling"}}};
}

void save_stages(const fs::path& folder, const SavedModel& model, const SentenceStages& stages) {
  const fs::path root = model.modules.folder;
  for (const auto& item : stages->named_children()) {
    const auto& stage = model.stages.at(std::stoul(item.key()) - 1);
    const fs::path own = folder / fs::path(stage.folder).lexically_relative(root);
    make_folder(own.string());
    save_weights(*item.value(), (own / "model.safetensors").string());
  }
}

bool is_stage_weights(const fs::path& file) {
  return file.filename() == "model.safetensors" || file.filename() == "pytorch_model.bin";
}

// The files of a stage after the first; of one without an effect, which is not among the stages,
// its weights too.
void copy_stage(const std::string& path, const fs::path& root, const SavedModel& model) {
  const std::string own = (model.modules.folder / path).string();
  const bool has_effect = std::any_of(model.stages.begin(), model.stages.end(),
                                      [&](const auto& stage) { return stage.folder == own; });
  copy_files(own, root / path, [&](const fs::path& file) {
    return is_copied(file, false) || (!has_effect && is_stage_weights(file));
  });
}

// All but the encoder.
void save_rest(const fs::path& root, const SavedModel& model, const SentenceStages& stages) {
  const fs::path source = model.modules.folder, inner = model.modules.stages.front().path;
  copy_files(source / inner, root / inner, [&](const fs::path& file) {
    return is_copied(file, /*is_of_encoder=*/true) && (model.modules.is_listed || !is_unread(file));
  });
  const std::string modules = (root / kModules).string();
  if (!model.modules.is_listed) {
    return write_json_file(modules, usual_modules(root, model, stages));
  }
  if (!inner.empty()) {
    copy_files(source, root, [](const fs::path& file) { return is_copied(file, false); });
  }
  for (std::size_t i = 1; i < model.modules.stages.size(); ++i) {
    const std::string& path = model.modules.stages[i].path;
    if (!path.empty()) copy_stage(path, root, model);
  }
  save_stages(root, model, stages);
  copy_files(source, root, [](const fs::path& file) { return file.filename() == kModules; });
}

}  // namespace

void save_sentence_model(const Encoder& encoder, const SentenceStages& stages,
                         const std::string& folder, const SaveSentenceModelOptions& options) {
  TORCH_CHECK_VALUE(!stages.is_empty(), "[", kSaveModel, "] stages must not be an empty holder");
  const std::string& source = options.source();
  TORCH_CHECK_VALUE(options.overwrite() || !is_same_place(source, folder), "[", kSaveModel,
                    "] folder must not be the source, unless SaveSentenceModelOptions::overwrite "
                    "allows it. Got ",
                    folder);
  const SavedModel model = source_of(stages, source);
  const fs::path inner = model.modules.stages.front().path;
  // It is checked before anything is written.
  save_pretrained(encoder, (fs::path(folder) / inner).string(),
                  SavePretrainedOptions()
                      .rest_of((fs::path(source) / inner).string())
                      .overwrite(options.overwrite())
                      .max_shard_bytes(options.max_shard_bytes()));
  io::in_context(kSaveModel, folder, [&] { save_rest(folder, model, stages); });
}

}  // namespace posenc
