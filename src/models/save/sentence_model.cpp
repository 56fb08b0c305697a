// save_sentence_model().

#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "models/save/write_folder.h"
#include "models/sentence/pooling.h"
#include "models/sentence/stage_settings.h"
#include "posenc/models/save_pretrained.h"
#include "posenc/models/save_sentence_model.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/weights/save.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;
using sentence::FirstStage;

constexpr const char* kSaveModel = "save_sentence_model";
constexpr const char* kModules = "modules.json";

// What a folder of sentence-transformers has besides weights.
const char* const kCopied[] = {".json", ".txt",   ".model", ".jinja",
                               ".md",   ".codes", ".bpe",   ".tiktoken"};

// The model that is saved, and where its parts are in the source.
struct SavedModel {
  SentenceModules modules;
  std::vector<SentenceStageFolder> stages;  // after the first
};

// A model with a head for masked words is one of SparseEncoder, also without a modules.json.
SavedModel source_of(const SentenceStages& stages, const std::string& source, FirstStage first) {
  const auto kind =
      first == FirstStage::MaskedHead ? std::optional(SentenceKind::Sparse) : std::nullopt;
  SavedModel model = {sentence_modules(kSaveModel, source, kind), {}};
  TORCH_CHECK_VALUE(model.modules.is_listed || !has_modules(source), "[", kSaveModel,
                    "] source must be no cross-encoder, which save_pretrained() saves. Got ",
                    source);
  const SentenceFolder read = read_sentence_folder(source, kind);
  TORCH_CHECK_VALUE(read.routes.size() == 1, "[", kSaveModel,
                    "] source must be a model without a Router. Got ", source);
  TORCH_CHECK_VALUE(read.routes.front().first == first, "[", kSaveModel,
                    "] source must be a model with ",
                    first == FirstStage::MaskedHead ? "a head for masked words" : "an encoder",
                    ". Got ", model.modules.stages.front().type);
  model.stages = read.routes.front().stages;
  const auto& own = stages->options.stages();
  TORCH_CHECK_VALUE(own.size() == model.stages.size(), "[", kSaveModel,
                    "] stages must be as many as those of ", source, ", ", model.stages.size(),
                    ". Got ", own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    TORCH_CHECK_VALUE(model.stages[i].weights.empty() || !model.stages[i].prefix.empty(), "[",
                      kSaveModel, "] stage ", i + 1,
                      " must have its weights in model.safetensors. Got ", model.stages[i].weights);
    TORCH_CHECK_VALUE(own[i] == model.stages[i].stage, "[", kSaveModel, "] stage ", i + 1,
                      " must be that of ", source, ". Got one with other options");
  }
  return model;
}

bool are_same_folder(const std::string& a, const std::string& b) {
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

// Adds those files of the folder `inner` of a source, if there is one, for which `is_copied` is
// true.
template <typename Condition>
void add_copies(FolderWriter& written, const fs::path& source, const std::string& inner,
                const Condition& is_copied) {
  const fs::path from = source / inner;
  std::error_code error;
  if (!fs::is_directory(from, error)) return;
  error.clear();
  for (const auto& entry : fs::directory_iterator(from, error)) {
    if (!entry.is_regular_file() || !is_copied(entry.path())) continue;
    written.add_copy((fs::path(inner) / entry.path().filename()).generic_string(),
                     entry.path().string());
  }
  if (!error) return;
  throw WeightsError(WeightsErrorCode::Io, "cannot be copied: " + error.message())
      .in_file(from.string());
}

// The stages of an encoder that had none: the pooling that it is given.
void add_default_modules(FolderWriter& written, const SavedModel& model,
                         const SentenceStages& stages) {
  const sentence::Stage& stage = model.stages.front().stage;
  const bool is_splade = std::holds_alternative<sentence::SpladePooling>(stage);
  const std::string kind = is_splade ? "SpladePooling" : "Pooling", path = "1_" + kind;
  const std::string package = "sentence_transformers.";
  if (is_splade) {
    written.add_json(path + "/config.json",
                     {{"pooling_strategy", "max"}, {"activation_function", "relu"}});
    written.add_json("sentence_bert_config.json", {{"transformer_task", "fill-mask"}});
    written.add_json("config_sentence_transformers.json",
                     {{"model_type", kind_name(SentenceKind::Sparse)}});
  } else {
    written.add_json(path + "/config.json", pooling_settings(std::get<sentence::Pooling>(stage),
                                                             stages->options.d_model()));
  }
  written.add_json(kModules, {{{"idx", 0},
                               {"name", "0"},
                               {"path", ""},
                               {"type", package + "base.modules.transformer.Transformer"}},
                              {{"idx", 1},
                               {"name", "1"},
                               {"path", path},
                               {"type", package +
                                            (is_splade ? "sparse_encoder.modules.splade_pooling."
                                                       : "sentence_transformer.modules.pooling.") +
                                            kind}}});
}

void add_stages(FolderWriter& written, const SavedModel& model, const SentenceStages& stages) {
  for (const auto& item : stages->named_children()) {
    const auto& stage = model.stages.at(std::stoul(item.key()) - 1);
    const fs::path own = fs::path(stage.folder).lexically_relative(model.modules.folder);
    written.add_weights((own / "model.safetensors").generic_string(), state_dict(*item.value()));
  }
}

bool is_stage_weights(const fs::path& file) {
  return file.filename() == "model.safetensors" || file.filename() == "pytorch_model.bin";
}

// The files of a stage after the first; of one without an effect, which is not among the stages,
// its weights too.
void add_stage_copies(FolderWriter& written, const SavedModel& model, const std::string& path) {
  const std::string own = (model.modules.folder / path).string();
  const bool has_effect = std::any_of(model.stages.begin(), model.stages.end(),
                                      [&](const auto& stage) { return stage.folder == own; });
  add_copies(written, model.modules.folder, path, [&](const fs::path& file) {
    return is_copied(file, false) || (!has_effect && is_stage_weights(file));
  });
}

// The weights of stages that Stanford's ColBERT has beside those of the encoder.
void add_linear(PretrainedFolder& contents, const SavedModel& model, const SentenceStages& stages) {
  for (const auto& item : stages->named_children()) {
    const auto& stage = model.stages.at(std::stoul(item.key()) - 1);
    if (stage.prefix.empty()) continue;
    for (const auto& own : state_dict(*item.value()->named_children()["linear"])) {
      const std::string name = stage.prefix + own.key();
      if (contents.tensors.contains(name)) contents.tensors.erase(name);
      contents.tensors.insert(name, own.value());
    }
  }
}

// All but the encoder. Files that stay where they are, in the source itself, are not copied.
void add_rest(FolderWriter& written, const SavedModel& model, const SentenceStages& stages,
              bool is_source) {
  const fs::path& source = model.modules.folder;
  const std::string& inner = model.modules.stages.front().path;
  if (!is_source) {
    add_copies(written, source, inner, [&](const fs::path& file) {
      return is_copied(file, /*is_of_encoder=*/true) &&
             (model.modules.is_listed || !is_unread(file));
    });
  }
  if (stages->options.result() == sentence::Feature::Tokens && !model.modules.is_listed) {
    const fs::path metadata = source / "artifact.metadata";
    if (!is_source && io::may_exist(metadata.string()))
      written.add_copy(metadata.filename().string(), metadata.string());
    return;
  }
  if (!model.modules.is_listed) return add_default_modules(written, model, stages);
  if (!is_source) {
    if (!inner.empty())
      add_copies(written, source, "", [](const fs::path& file) { return is_copied(file, false); });
    for (std::size_t i = 1; i < model.modules.stages.size(); ++i) {
      const std::string& path = model.modules.stages[i].path;
      if (!path.empty()) add_stage_copies(written, model, path);
    }
  }
  add_stages(written, model, stages);
  if (!is_source) written.add_copy(kModules, (source / kModules).string());
}

}  // namespace

namespace {

template <typename Model>
void save_model(const Model& first, const SentenceStages& stages, const std::string& folder,
                const SaveSentenceModelOptions& options, FirstStage kind) {
  TORCH_CHECK_VALUE(!stages.is_empty(), "[", kSaveModel, "] stages must not be an empty holder");
  const std::string& source = options.source();
  TORCH_CHECK_VALUE(options.overwrite() || !are_same_folder(source, folder), "[", kSaveModel,
                    "] folder must not be the source, unless SaveSentenceModelOptions::overwrite "
                    "allows it. Got ",
                    folder);
  const SavedModel model = source_of(stages, source, kind);
  const std::string& inner = model.modules.stages.front().path;
  PretrainedFolder contents = pretrained_folder_of(first, (fs::path(folder) / inner).string(),
                                                   SavePretrainedOptions()
                                                       .rest_of((fs::path(source) / inner).string())
                                                       .overwrite(options.overwrite())
                                                       .max_shard_bytes(options.max_shard_bytes()));
  add_linear(contents, model, stages);
  io::in_context(kSaveModel, folder, [&] {
    FolderWriter written(folder);
    written.add_model(inner, contents);
    add_rest(written, model, stages, are_same_folder(source, folder));
    written.commit();
  });
}

}  // namespace

void save_sentence_model(const Encoder& encoder, const SentenceStages& stages,
                         const std::string& folder, const SaveSentenceModelOptions& options) {
  save_model(encoder, stages, folder, options, FirstStage::Encoder);
}

void save_sentence_model(const Classifier& model, const SentenceStages& stages,
                         const std::string& folder, const SaveSentenceModelOptions& options) {
  save_model(model, stages, folder, options, FirstStage::MaskedHead);
}

}  // namespace posenc
