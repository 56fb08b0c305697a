// save_sentence_model().
//
// posenc-budget: one function, what it checks, and the files of all kinds of sources

#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "models/config/settings.h"
#include "models/save/copied_files.h"
#include "models/save/write_folder.h"
#include "models/sentence/modules.h"
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

// A route that is saved, and where its parts are in the source.
struct SavedRoute {
  const SentenceModelRoute& own;
  const SentenceRoute& source;
  std::string inner;  // the folder of its first stage
};

// The model that is saved.
struct SavedModel {
  SentenceModules modules;
  SentenceFolder source;
  std::vector<SavedRoute> routes;
};

const char* name_of(FirstStage first) {
  switch (first) {
    case FirstStage::Encoder: return "an encoder";
    case FirstStage::MaskedHead: return "a head for masked words";
    case FirstStage::StaticEmbedding: return "a static embedding";
    case FirstStage::Tokens: break;
  }
  return "no first stage but the ids";
}

FirstStage first_of(const SentenceModelRoute& route) {
  if (std::holds_alternative<Encoder>(route.first)) return FirstStage::Encoder;
  return std::holds_alternative<Classifier>(route.first) ? FirstStage::MaskedHead
                                                         : FirstStage::Tokens;
}

const torch::nn::Module* first_module(const SentenceModelRoute& route) {
  if (const auto* encoder = std::get_if<Encoder>(&route.first)) return encoder->get();
  const auto* model = std::get_if<Classifier>(&route.first);
  return model == nullptr ? nullptr : model->get();
}

// Weights by tokens, of which only the tokenizer knows the number.
bool is_by_tokens(const SentenceStageFolder& stage) { return stage.weights.ends_with(".json"); }

bool fits(const sentence::Stage& own, const SentenceStageFolder& source) {
  return own == source.stage ||
         (is_by_tokens(source) && std::holds_alternative<sentence::SparseStaticEmbedding>(own));
}

void check_stages(const SentenceModelRoute& route, const SentenceRoute& source,
                  const std::string& folder) {
  const auto& own = route.stages->options.stages();
  TORCH_CHECK_VALUE(own.size() == source.stages.size(), "[", kSaveModel,
                    "] stages must be as many as those of ", folder, ", ", source.stages.size(),
                    ". Got ", own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    const SentenceStageFolder& stage = source.stages[i];
    TORCH_CHECK_VALUE(stage.weights.empty() || !stage.prefix.empty() || is_by_tokens(stage), "[",
                      kSaveModel, "] stage ", i + 1,
                      " must have its weights in model.safetensors. Got ", stage.weights);
    TORCH_CHECK_VALUE(fits(own[i], stage), "[", kSaveModel, "] stage ", i + 1, " must be that of ",
                      folder, ". Got one with other options");
  }
}

// What is in one folder is one module of all routes.
void check_shared(const std::vector<SavedRoute>& routes) {
  using Modules = std::map<std::string, const torch::nn::Module*>;
  const auto check = [](Modules& known, const std::string& folder, const torch::nn::Module* own) {
    TORCH_CHECK_VALUE(known.emplace(folder, own).first->second == own, "[", kSaveModel,
                      "] routes that have a stage of one folder must have one module for it. Got "
                      "two for ",
                      folder);
  };
  Modules models, stages;
  for (const SavedRoute& route : routes) {
    check(models, route.source.encoder, first_module(route.own));
    for (const auto& item : route.own.stages->named_children())
      check(stages, route.source.stages.at(std::stoul(item.key()) - 1).folder, item.value().get());
  }
}

// A model with a head for masked words is one of SparseEncoder, also without a modules.json.
SavedModel source_of(const std::vector<SentenceModelRoute>& routes, const std::string& source) {
  TORCH_CHECK_VALUE(!routes.empty(), "[", kSaveModel,
                    "] routes must be at least one. Got no route");
  const auto kind = first_of(routes.front()) == FirstStage::MaskedHead
                        ? std::optional(SentenceKind::Sparse)
                        : std::nullopt;
  SavedModel model = {sentence_modules(kSaveModel, source, kind), {}, {}};
  TORCH_CHECK_VALUE(model.modules.is_listed || !has_modules(source), "[", kSaveModel,
                    "] source must be no cross-encoder, which save_pretrained() saves. Got ",
                    source);
  model.source = read_sentence_folder(source, kind);
  TORCH_CHECK_VALUE(model.source.routes.size() == routes.size(), "[", kSaveModel, "] source must ",
                    routes.size() == 1 ? "be a model without a Router"
                                       : "have " + std::to_string(routes.size()) + " routes",
                    ". Got ", source);
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const SentenceRoute& own = model.source.routes[i];
    TORCH_CHECK_VALUE(!routes[i].stages.is_empty(), "[", kSaveModel,
                      "] stages must not be an empty holder");
    const FirstStage first = first_of(routes[i]);
    TORCH_CHECK_VALUE(has_layers(first) ? own.first == first : !has_layers(own.first), "[",
                      kSaveModel, "] source must be a model with ", name_of(first), ". Got ",
                      name_of(own.first));
    check_stages(routes[i], own, source);
    model.routes.push_back({routes[i], own, folder_within(model.modules, own)});
  }
  check_shared(model.routes);
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
  const auto names = files_in(from, error);
  if (error) throw unreadable_folder(from, error);
  for (const std::string& name : names)
    if (is_copied(from / name))
      written.add_copy((fs::path(inner) / name).generic_string(), (from / name).string());
}

// The stages of an encoder that had none: the pooling that it is given.
void add_default_modules(FolderWriter& written, const SavedRoute& route) {
  const sentence::Stage& stage = route.source.stages.front().stage;
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
                                                             route.own.stages->options.d_model()));
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

// Calls f(module, stage) for the stages that have weights, once for one that several routes share.
template <typename F>
void for_each_stage(const SavedModel& model, const F& f) {
  std::set<std::string> seen;  // folders
  for (const SavedRoute& route : model.routes) {
    for (const auto& item : route.own.stages->named_children()) {
      const SentenceStageFolder& stage = route.source.stages.at(std::stoul(item.key()) - 1);
      if (seen.insert(stage.folder).second) f(*item.value(), stage);
    }
  }
}

void add_stages(FolderWriter& written, const SavedModel& model) {
  for_each_stage(model, [&](const torch::nn::Module& module, const SentenceStageFolder& stage) {
    const fs::path own = fs::path(stage.folder).lexically_relative(model.modules.folder);
    written.add_weights((own / "model.safetensors").generic_string(), state_dict(module));
    if (!is_by_tokens(stage)) return;
    nlohmann::json config =
        Settings(kSaveModel, (fs::path(stage.folder) / "config.json").string()).object();
    config.erase("path");
    written.add_json((own / "config.json").generic_string(), config);
  });
}

bool is_stage_weights(const fs::path& file) {
  return file.filename() == "model.safetensors" || file.filename() == "pytorch_model.bin";
}

// The files of a stage; of one whose module is not saved its weights too.
void add_stage_copies(FolderWriter& written, const SavedModel& model, const std::string& path) {
  const std::string own = (model.modules.folder / path).string();
  const SentenceStageFolder* saved = nullptr;
  for (const SavedRoute& route : model.routes)
    for (const SentenceStageFolder& stage : route.source.stages)
      if (stage.folder == own) saved = &stage;
  add_copies(written, model.modules.folder, path, [&](const fs::path& file) {
    if (saved == nullptr && is_stage_weights(file)) return true;
    return is_copied(file, false) && (saved == nullptr || file != fs::path(saved->weights));
  });
}

// The weights of stages that Stanford's ColBERT has beside those of the encoder.
void add_linear(PretrainedFolder& contents, const SavedModel& model) {
  for_each_stage(model, [&](torch::nn::Module& module, const SentenceStageFolder& stage) {
    if (stage.prefix.empty()) return;
    for (const auto& own : state_dict(*module.named_children()["linear"])) {
      const std::string name = stage.prefix + own.key();
      if (contents.tensors.contains(name)) contents.tensors.erase(name);
      contents.tensors.insert(name, own.value());
    }
  });
}

// All but the models of the first stages. Files that stay where they are, in the source itself, are
// not copied.
void add_rest(FolderWriter& written, const SavedModel& model, bool is_source) {
  const fs::path& source = model.modules.folder;
  std::set<std::string> models;
  for (const SavedRoute& route : model.routes)
    if (has_layers(route.source.first)) models.insert(route.inner);
  for (const std::string& inner : models) {
    if (is_source) break;
    add_copies(written, source, inner, [&](const fs::path& file) {
      return is_copied(file, /*is_of_encoder=*/true) &&
             (model.modules.is_listed || !is_unread(file));
    });
  }
  const SavedRoute& first = model.routes.front();
  if (first.own.stages->options.result() == sentence::Feature::Tokens && !model.modules.is_listed) {
    const fs::path metadata = source / "artifact.metadata";
    if (!is_source && io::may_exist(metadata.string()))
      written.add_copy(metadata.filename().string(), metadata.string());
    return;
  }
  if (!model.modules.is_listed) return add_default_modules(written, first);
  if (!is_source) {
    if (!models.contains(""))
      add_copies(written, source, "", [](const fs::path& file) { return is_copied(file, false); });
    for (const std::string& path : stage_folders(kSaveModel, model.modules))
      if (!path.empty() && !models.contains(path)) add_stage_copies(written, model, path);
  }
  add_stages(written, model);
  if (!is_source) written.add_copy(kModules, (source / kModules).string());
}

// What is written of the models of the first stages, by their folders.
std::map<std::string, PretrainedFolder> models_of(const SavedModel& model,
                                                  const std::string& folder,
                                                  const SaveSentenceModelOptions& options) {
  std::map<std::string, PretrainedFolder> models;
  for (const SavedRoute& route : model.routes) {
    if (models.contains(route.inner)) continue;  // routes share it
    const auto own = SavePretrainedOptions()
                         .rest_of((model.modules.folder / route.inner).string())
                         .overwrite(options.overwrite())
                         .max_shard_bytes(options.max_shard_bytes());
    const std::string to = (fs::path(folder) / route.inner).string();
    if (const auto* encoder = std::get_if<Encoder>(&route.own.first)) {
      models.emplace(route.inner, pretrained_folder_of(*encoder, to, own));
    } else if (const auto* with_head = std::get_if<Classifier>(&route.own.first)) {
      models.emplace(route.inner, pretrained_folder_of(*with_head, to, own));
    }
  }
  return models;
}

}  // namespace

void save_sentence_model(const std::vector<SentenceModelRoute>& routes, const std::string& folder,
                         const SaveSentenceModelOptions& options) {
  const std::string& source = options.source();
  TORCH_CHECK_VALUE(options.overwrite() || !are_same_folder(source, folder), "[", kSaveModel,
                    "] folder must not be the source, unless SaveSentenceModelOptions::overwrite "
                    "allows it. Got ",
                    folder);
  const SavedModel model = source_of(routes, source);
  auto models = models_of(model, folder, options);
  if (models.size() == 1) add_linear(models.begin()->second, model);
  io::in_context(kSaveModel, folder, [&] {
    FolderWriter written(folder);
    for (const auto& [inner, contents] : models) written.add_model(inner, contents);
    add_rest(written, model, are_same_folder(source, folder));
    written.commit();
  });
}

void save_sentence_model(const Encoder& encoder, const SentenceStages& stages,
                         const std::string& folder, const SaveSentenceModelOptions& options) {
  save_sentence_model({{encoder, stages}}, folder, options);
}

void save_sentence_model(const Classifier& model, const SentenceStages& stages,
                         const std::string& folder, const SaveSentenceModelOptions& options) {
  save_sentence_model({{model, stages}}, folder, options);
}

}  // namespace posenc
