// The stages of a model as their folders describe them.

#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>

#include "models/lora/adapted_folder.h"
#include "models/sentence/stage_settings.h"
#include "models/sentence/transformer_settings.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;
using sentence::FirstStage;
using sentence::Task;

constexpr TransformerTask kFeatures[] = {TransformerTask::FeatureExtraction};

// Whether a stage is one of which the encoder gives what it reads.
bool has_effect(const char* caller, const SentenceRoute& route, const StageKind& kind) {
  if (kind.acts == nullptr) return true;
  return kind.acts({caller, (fs::path(route.base) / "config.json").string()});
}

const StageKind& kind_of_stage(const char* caller, const SentenceModules& modules,
                               const SentenceModule& stage) {
  std::string names;
  for (const StageKind* const kind : stage_kinds()) {
    if (stage.kind == kind->name) return *kind;
    const char* const between = names.empty() ? "" : kind == stage_kinds().back() ? " or " : ", ";
    names += between + std::string(kind->name);
  }
  TORCH_CHECK_VALUE(false, "[", caller, "] ", (modules.folder / "modules.json").string(),
                    ": type must be Transformer or StaticEmbedding, and then ", names,
                    "; posenc has no other stages of sentence-transformers. Got ", stage.type);
}

// A causal model's vector is that of its last token.
sentence::PoolingMode default_pooling(const char* caller, const std::string& folder) {
  const Settings config(caller, (fs::path(folder) / "config.json").string());
  const nlohmann::json& classes = config.value("architectures");
  const bool is_generator = classes.is_array() && !classes.empty() && classes[0].is_string() &&
                            classes[0].get<std::string>().ends_with("ForCausalLM");
  return is_generator && config.flag("is_causal", true) ? sentence::PoolingMode::LastToken
                                                        : sentence::PoolingMode::Mean;
}

// Tokens are what a Dense of a model of vectors per token reads unless it says otherwise.
Settings settings_of(const char* caller, const SentenceModule& module, const std::string& folder,
                     const StageKind& kind, SentenceKind model) {
  Settings config = settings_of_stage(caller, folder, kind);
  if (model == SentenceKind::MultiVector && module.kind == "Dense" && !module.is_routed)
    config.set_default("module_input_name", "token_embeddings");
  return config;
}

// What comes after the first stage.
std::vector<SentenceStageFolder> stages_after_first(const char* caller,
                                                    const SentenceModules& modules,
                                                    const std::vector<SentenceModule>& own,
                                                    const SentenceRoute& route,
                                                    SentenceKind model) {
  if (!modules.is_listed) return {{sentence::Pooling{{default_pooling(caller, route.base)}}, ""}};
  std::vector<SentenceStageFolder> stages;
  for (std::size_t i = 1; i < own.size(); ++i) {
    const StageKind& kind = kind_of_stage(caller, modules, own[i]);
    if (!has_effect(caller, route, kind)) continue;
    const std::string folder = stage_folder(modules, own[i]);
    stages.push_back({kind.read(settings_of(caller, own[i], folder, kind, model)), folder});
  }
  return stages;
}

void read_transformer(const char* caller, const SentenceModules& modules, SentenceKind model,
                      SentenceRoute& route) {
  if (!modules.is_listed) check_no_chat_template(caller, route.encoder);
  const TransformerSettings texts =
      transformer_settings(caller, route.encoder, route.base, kFeatures, modules.is_listed);
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

SentenceRoute read_route(const char* caller, const SentenceModules& modules,
                         const std::vector<SentenceModule>& own, SentenceKind model,
                         const std::string& base) {
  const bool is_static = !own.empty() && own.front().kind == "StaticEmbedding";
  TORCH_CHECK_VALUE(is_static || (!own.empty() && own.front().kind == "Transformer"), "[", caller,
                    "] ", (modules.folder / "modules.json").string(),
                    ": the first stage must be Transformer or StaticEmbedding. Got ",
                    own.empty() ? "none" : own.front().type);
  SentenceRoute route;
  route.first = is_static ? FirstStage::StaticEmbedding : FirstStage::Encoder;
  route.encoder = stage_folder(modules, own.front());
  route.base = is_static ? route.encoder : config_folder(caller, route.encoder, base);
  if (!is_static) read_transformer(caller, modules, model, route);
  route.stages = stages_after_first(caller, modules, own, route, model);
  return route;
}

}  // namespace

std::vector<SentenceRoute> sentence_routes(const char* caller, const SentenceModules& modules,
                                           SentenceKind kind, const std::string& base) {
  std::vector<SentenceRoute> routes;
  std::vector<std::vector<SentenceModule>> known;
  for (const Task task : {Task::None, Task::Query, Task::Document}) {
    const auto own = modules_of(caller, modules, task);
    if (!own) continue;
    const auto same = std::find(known.begin(), known.end(), *own) - known.begin();
    if (same == std::ssize(known)) {
      routes.push_back(read_route(caller, modules, *own, kind, base));
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
