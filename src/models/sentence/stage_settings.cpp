#include "models/sentence/stage_settings.h"
#include "models/config/model_folder.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <set>

#include "models/sentence/transformer_settings.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostSettings = 256'000'000;  // bytes: WordWeights has a vocabulary in them
constexpr const char* kPackage = "sentence_transformers.";

bool leaves_folder(const std::string& path) {
  const fs::path given(path);
  if (given.is_absolute()) return true;
  for (const fs::path& part : given) {
    if (part == "..") return true;
  }
  return false;
}

// Whether a stage is one of which the encoder gives what it reads.
bool has_effect(const char* caller, const SentenceModules& modules, const StageKind& kind) {
  if (kind.acts == nullptr) return true;
  return kind.acts(
      {caller, (fs::path(stage_folder(modules, modules.stages.front())) / "config.json").string()});
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

}  // namespace

Settings settings_of_stage(const char* caller, const std::string& folder, const StageKind& kind) {
  const std::string path = (fs::path(folder) / kind.file).string();
  if (kind.may_lack_settings && !io::may_exist(path)) {
    return Settings::of_object(caller, nlohmann::json::object());
  }
  return {caller, path, kMostSettings};
}

Activation activation_at(const Settings& config, const char* name) {
  const std::string path = config.text(name);
  const std::string last = path.substr(path.rfind('.') + 1);
  for (const char* module :
       {"torch.nn.modules.activation.", "torch.nn.modules.linear.", "torch.nn."}) {
    if (path != module + last) continue;
    try {
      return activation_of_class(last);
    } catch (const c10::ValueError&) {  // refused below
    }
  }
  config.refuse(name,
                "must be an activation of torch.nn that posenc has, such as "
                "torch.nn.modules.activation.Tanh");
}

std::string stage_folder(const SentenceModules& modules, const SentenceModule& stage) {
  return stage.path.empty() ? modules.folder.string() : (modules.folder / stage.path).string();
}

SentenceModules checked_modules(const char* caller, const std::string& folder) {
  SentenceModules modules = read_modules(caller, folder);
  std::set<std::string> names;
  for (const SentenceModule& stage : modules.stages) {
    const std::string where =
        "[" + std::string(caller) + "] " + (modules.folder / "modules.json").string() + ": ";
    TORCH_CHECK_VALUE(stage.type.starts_with(kPackage), where,
                      "type must be a stage of sentence-transformers; code in the folder is not "
                      "run. Got ",
                      stage.type);
    TORCH_CHECK_VALUE(!leaves_folder(stage.path), where,
                      "path must be a folder inside the model's. Got ", stage.path);
    TORCH_CHECK_VALUE(names.insert(stage.name).second, where,
                      "name must differ from those of the other stages. Got ", stage.name,
                      " twice");
  }
  return modules;
}

Settings model_settings(const char* caller, const std::string& folder) {
  return settings_or_none(caller,
                          (fs::path(folder) / "config_sentence_transformers.json").string());
}

SentenceModules sentence_modules(const char* caller, const std::string& folder) {
  check_is_folder(caller, folder);
  const SentenceModules defaults = {folder, {{"Transformer", "", "", ""}}, false};
  if (!has_modules(folder)) return defaults;
  const Settings config = model_settings(caller, folder);
  const std::string kind = config.text("model_type", "SentenceTransformer");
  if (kind == "CrossEncoder") return defaults;
  if (kind != "SentenceTransformer") {
    config.refuse("model_type", "must be SentenceTransformer, whose vectors posenc computes");
  }
  return checked_modules(caller, folder);
}

std::vector<SentenceStageSettings> stages_after_first(const char* caller,
                                                      const SentenceModules& modules) {
  if (!modules.is_listed) {
    return {{sentence::Pooling{{default_pooling(caller, modules.folder.string())}}, ""}};
  }
  std::vector<SentenceStageSettings> stages;
  for (std::size_t i = 1; i < modules.stages.size(); ++i) {
    const StageKind& kind = kind_of_stage(caller, modules, modules.stages[i]);
    if (!has_effect(caller, modules, kind)) continue;
    const std::string folder = stage_folder(modules, modules.stages[i]);
    stages.push_back({kind.read(settings_of_stage(caller, folder, kind)), folder});
  }
  return stages;
}

}  // namespace posenc
