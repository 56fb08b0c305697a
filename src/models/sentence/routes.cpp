// The stages of a model as their folders describe them.

#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "models/lora/adapted_folder.h"
#include "models/sentence/stage_settings.h"
#include "models/sentence/transformer_settings.h"
#include "posenc/models/encoder.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;
using sentence::FirstStage;
using sentence::Task;

constexpr TransformerTask kFeatures[] = {TransformerTask::FeatureExtraction};
constexpr TransformerTask kSparse[] = {TransformerTask::FeatureExtraction,
                                       TransformerTask::FillMask};
constexpr TransformerTask kFillMask[] = {TransformerTask::FillMask};

// Whether a stage is one of which the encoder gives what it reads.
bool has_effect(const char* caller, const SentenceRoute& route, const StageKind& kind) {
  if (kind.acts == nullptr) return true;
  return kind.acts({caller, (fs::path(route.base) / "config.json").string()});
}

const StageKind& kind_of_stage(const char* caller, const SentenceModules& modules,
                               const SentenceModule& stage) {
  std::string names;
  for (const StageKind* const kind : stage_kinds()) {
    if (kind->read == nullptr) continue;
    if (stage.kind == kind->name) return *kind;
    const char* const between = names.empty() ? "" : kind == stage_kinds().back() ? " or " : ", ";
    names += between + std::string(kind->name);
  }
  TORCH_CHECK_VALUE(false, "[", caller, "] ", (modules.folder / "modules.json").string(),
                    ": type must be Transformer, StaticEmbedding or SparseStaticEmbedding, and "
                    "then ",
                    names, "; posenc has no other stages of sentence-transformers. Got ",
                    stage.type);
}

// A file of weights by tokens, which sentence-transformers looks for in the working directory and
// on the hub; here it has to be in the folder of the stage or of the model.
std::string weights_by_tokens(const SentenceModules& modules, const Settings& config,
                              const std::string& folder) {
  const std::string path = config.text("path", "");
  if (!path.ends_with(".json")) return "";
  for (const fs::path& root : {fs::path(folder), modules.folder})
    if (!leaves_folder(path) && io::may_exist((root / path).string()))
      return (root / path).string();
  config.refuse("path", "must be a file in the folder of the stage or of the model");
}

// A causal model's vector is that of its last token.
sentence::PoolingMode default_pooling(const char* caller, const std::string& folder) {
  const Settings config(caller, (fs::path(folder) / "config.json").string());
  return is_generator(config) && config.flag("is_causal", true) ? sentence::PoolingMode::LastToken
                                                                : sentence::PoolingMode::Mean;
}

// What is made of the tokens of a model without a list of stages.
SentenceStageFolder default_stage(const char* caller, const SentenceRoute& route) {
  if (route.first == FirstStage::MaskedHead) return {sentence::SpladePooling{}, ""};
  return {sentence::Pooling{{default_pooling(caller, route.base)}}, ""};
}

// Tokens are what a Dense of a model of vectors per token reads unless it says otherwise. Scores
// are the vectors of a cross-encoder.
Settings settings_of(const char* caller, const SentenceModule& module, const std::string& folder,
                     const StageKind& kind, SentenceKind model) {
  Settings config = settings_of_stage(caller, folder, kind);
  if (model == SentenceKind::MultiVector && module.kind == "Dense" && !module.is_routed)
    config.set_default("module_input_name", "token_embeddings");
  const char* const output = "module_output_name";
  if (model == SentenceKind::CrossEncoder && config.text(output, "") == "scores")
    config.set(output, "sentence_embedding");
  return config;
}

// Of a model that is read as a sparse one although it is not.
std::span<const TransformerTask> tasks_of(const SentenceModules& modules,
                                          const SentenceModule& module, SentenceKind model) {
  if (model != SentenceKind::Sparse) return kFeatures;
  if (!modules.is_listed || module.kind == "MLMTransformer") return kFillMask;
  return kSparse;
}

void read_transformer(const char* caller, const SentenceModules& modules,
                      const SentenceModule& module, SentenceKind model,
                      const ColbertSettings& colbert, SentenceRoute& route) {
  if (!modules.is_listed) check_no_chat_template(caller, route.encoder);
  const TransformerSettings texts =
      transformer_settings(caller, route.encoder, route.base, tasks_of(modules, module, model),
                           modules.is_listed, false, colbert.transformer);
  if (texts.task == TransformerTask::FillMask) route.first = FirstStage::MaskedHead;
  route.max_seq_length = texts.max_seq_length;
  route.max_positions = texts.max_positions;
  route.query_length = texts.query_length;
  route.document_length = texts.document_length;
  route.query_expansion = texts.query_expansion;
  route.do_lower_case = texts.do_lower_case;
  TORCH_CHECK_VALUE(!route.query_expansion || model == SentenceKind::MultiVector, "[", caller, "] ",
                    route.encoder, ": query_expansion must be null in a ", kind_name(model),
                    ", which has no vectors for the tokens that it adds. Got one");
}

FirstStage first_stage(const char* caller, const SentenceModules& modules,
                       const std::vector<SentenceModule>& own, SentenceKind model) {
  const std::string kind = own.empty() ? "" : own.front().kind;
  if (kind == "Transformer" || kind == "MLMTransformer") return FirstStage::Encoder;
  if (kind == "StaticEmbedding") return FirstStage::StaticEmbedding;
  if (kind == "SparseStaticEmbedding" && model == SentenceKind::Sparse) return FirstStage::Tokens;
  TORCH_CHECK_VALUE(false, "[", caller, "] ", (modules.folder / "modules.json").string(),
                    ": the first stage must be Transformer, StaticEmbedding or, in a "
                    "SparseEncoder, SparseStaticEmbedding. Got ",
                    own.empty() ? "no stage" : own.front().type);
}

SentenceRoute read_route(const char* caller, const SentenceModules& modules,
                         const std::vector<SentenceModule>& own, SentenceKind model,
                         const std::string& base, const ColbertSettings& colbert) {
  SentenceRoute route;
  route.first = first_stage(caller, modules, own, model);
  route.encoder = stage_folder(modules, own.front());
  const bool is_model = route.first == FirstStage::Encoder;
  route.base = is_model ? config_folder(caller, route.encoder, base) : route.encoder;
  if (is_model) read_transformer(caller, modules, own.front(), model, colbert, route);
  if (!colbert.has_all_stages)
    route.stages = stages_after_first(caller, modules, own, route, model);
  route.stages.insert(route.stages.end(), colbert.stages.begin(), colbert.stages.end());
  for (const auto& [prompt, marker] : colbert.markers) route.markers.push_back(marker);
  const bool is_splade = !route.stages.empty() && std::holds_alternative<sentence::SpladePooling>(
                                                      route.stages.front().stage);
  TORCH_CHECK_VALUE(route.first != FirstStage::MaskedHead || is_splade, "[", caller, "] ",
                    route.encoder,
                    ": transformer_task must be feature-extraction unless SpladePooling follows. "
                    "Got fill-mask");
  return route;
}

// BGE-M3's weights of tokens, in place of the stages that make a dense vector.
SentenceRoute lexical_route(const char* caller, const SentenceModules& modules,
                            SentenceRoute route) {
  const EncoderOptions options =
      encoder_options_from_hf((fs::path(route.base) / "config.json").string());
  TORCH_CHECK_VALUE(route.first == FirstStage::Encoder && options.embeddings(), "[", caller, "] ",
                    modules.folder.string(),
                    ": sparse_linear.pt must be beside an encoder of text. Got another first "
                    "stage");
  const std::string folder = modules.folder.string();
  route.stages = {{sentence::LexicalWeights{options.encoder().layer().d_model(),
                                            options.embeddings()->vocab_size()},
                   folder, lexical_weights_in(folder)}};
  return route;
}

}  // namespace

bool is_generator(const Settings& config) {
  const nlohmann::json& classes = config.value("architectures");
  return classes.is_array() && !classes.empty() && classes[0].is_string() &&
         classes[0].get<std::string>().ends_with("ForCausalLM");
}

std::vector<SentenceStageFolder> stages_after_first(const char* caller,
                                                    const SentenceModules& modules,
                                                    const std::vector<SentenceModule>& own,
                                                    const SentenceRoute& route,
                                                    SentenceKind model) {
  if (!modules.is_listed) return {default_stage(caller, route)};
  std::vector<SentenceStageFolder> stages;
  for (std::size_t i = route.first == FirstStage::Tokens ? 0 : 1; i < own.size(); ++i) {
    const StageKind& kind = kind_of_stage(caller, modules, own[i]);
    if (!has_effect(caller, route, kind)) continue;
    const std::string folder = stage_folder(modules, own[i]);
    const Settings config = settings_of(caller, own[i], folder, kind, model);
    stages.push_back({kind.read(config), folder});
    if (std::holds_alternative<sentence::SparseStaticEmbedding>(stages.back().stage))
      stages.back().weights = weights_by_tokens(modules, config, folder);
  }
  return stages;
}

std::vector<SentenceRoute> sentence_routes(const char* caller, const SentenceModules& modules,
                                           SentenceKind kind, const std::string& base,
                                           const ColbertSettings& colbert) {
  std::vector<SentenceRoute> routes;
  std::vector<std::vector<SentenceModule>> known;
  const std::string folder = modules.folder.string();
  const bool is_lexical = kind == SentenceKind::Sparse &&
                          sentence_kind(caller, folder, base) == SentenceKind::Dense &&
                          io::may_exist(lexical_weights_in(folder));
  for (const Task task : {Task::None, Task::Query, Task::Document}) {
    const auto own = modules_of(caller, modules, task);
    if (!own) continue;
    const auto same = std::find(known.begin(), known.end(), *own) - known.begin();
    if (same == std::ssize(known)) {
      routes.push_back(is_lexical ? lexical_route(caller, modules,
                                                  read_route(caller, modules, *own,
                                                             SentenceKind::Dense, base, {}))
                                  : read_route(caller, modules, *own, kind, base, colbert));
      known.push_back(*own);
    }
    routes[static_cast<std::size_t>(same)].tasks.push_back(task);
  }
  TORCH_CHECK_VALUE(!routes.empty(), "[", caller, "] ", modules.folder.string(),
                    ": a Router must have a default route, or one for the task query or document, "
                    "which it has not");
  return routes;
}

const SentenceRoute& SentenceFolder::route(Task task) const {
  std::string tasks;
  for (const SentenceRoute& route : routes) {
    for (const Task own : route.tasks) {
      if (own == task) return route;
      tasks += (tasks.empty() ? "" : ", ") + task_name(own);
    }
  }
  TORCH_CHECK_VALUE(false, "[SentenceFolder] task must be one of those with a route (", tasks,
                    "). Got ", task_name(task));
}

}  // namespace posenc
