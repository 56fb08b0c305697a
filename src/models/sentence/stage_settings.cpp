#include "models/sentence/stage_settings.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <set>

#include "io/base/file.h"
#include "models/sentence/pooling.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWidestStage = 1 << 24;
constexpr const char* kPackage = "sentence_transformers.";
constexpr const char* kActivationFunction = "activation_function";

bool leaves_folder(const std::string& path) {
  const fs::path given(path);
  if (given.is_absolute()) return true;
  for (const fs::path& part : given) {
    if (part == "..") return true;
  }
  return false;
}

sentence::Feature feature_in(const Settings& config, const char* name,
                             const std::string& fallback) {
  const std::string given = config.text(name, fallback);
  if (given == "sentence_embedding") return sentence::Feature::Sentence;
  if (given != "token_embeddings") {
    config.refuse(name, "must be sentence_embedding or token_embeddings");
  }
  return sentence::Feature::Tokens;
}

// The input and the output of a stage, of which the latter is the former unless it is given.
template <typename Stage>
void set_features(const Settings& config, Stage& stage) {
  const std::string usual = "sentence_embedding";
  stage.input = feature_in(config, "module_input_name", usual);
  stage.output = feature_in(config, "module_output_name", config.text("module_input_name", usual));
}

// Without the setting it is Tanh.
Elementwise activation_in_stage(const Settings& config) {
  if (!config.mentions(kActivationFunction)) return Elementwise::Tanh;
  return activation_at(config, kActivationFunction);
}

sentence::Stage pooling_in(const Settings& config) {
  return sentence::Pooling{pooling_modes(config), config.flag("include_prompt", true)};
}

sentence::Stage dense_in(const Settings& config) {
  sentence::Dense dense = {config.whole("in_features", 1, kWidestStage),
                           config.whole("out_features", 1, kWidestStage)};
  dense.bias = config.flag("bias", true);
  dense.activation = activation_in_stage(config);
  dense.use_residual = config.flag("use_residual", false);
  set_features(config, dense);
  return dense;
}

sentence::Stage normalize_in(const Settings& config) {
  sentence::Normalize normalize;
  set_features(config, normalize);
  return normalize;
}

sentence::Stage layer_norm_in(const Settings& config) {
  return sentence::LayerNorm{config.whole("dimension", 1, kWidestStage)};
}

sentence::Stage dropout_in(const Settings& config) {
  return sentence::Dropout{config.real("dropout", 0.2)};
}

struct StageKind {
  const char* name;
  sentence::Stage (*read)(const Settings& config);
  bool may_lack_settings;  // git keeps no empty folder
};

constexpr StageKind kStageKinds[] = {{"Pooling", pooling_in, false},
                                     {"Dense", dense_in, false},
                                     {"Normalize", normalize_in, true},
                                     {"LayerNorm", layer_norm_in, false},
                                     {"Dropout", dropout_in, true}};

Settings settings_of_stage(const char* caller, const std::string& folder, bool may_lack) {
  const std::string path = (fs::path(folder) / "config.json").string();
  if (may_lack && !io::may_exist(path)) {
    return Settings::of_object(caller, nlohmann::json::object());
  }
  return {caller, path};
}

// Averages of layers act only if the encoder returns all of its layers.
bool is_without_effect(const char* caller, const SentenceModules& modules,
                       const SentenceModule& stage) {
  if (stage.kind != "WeightedLayerPooling") return false;
  const Settings encoder(
      caller, (fs::path(stage_folder(modules, modules.stages.front())) / "config.json").string());
  return !encoder.flag("output_hidden_states", false);
}

sentence::Stage stage_in(const char* caller, const SentenceModules& modules,
                         const SentenceModule& stage) {
  for (const StageKind& kind : kStageKinds) {
    if (stage.kind != kind.name) continue;
    return kind.read(
        settings_of_stage(caller, stage_folder(modules, stage), kind.may_lack_settings));
  }
  TORCH_CHECK_VALUE(false, "[", caller, "] ", (modules.folder / "modules.json").string(),
                    ": type must be Transformer or StaticEmbedding, and then Pooling, Dense, "
                    "Normalize, LayerNorm or Dropout; posenc has no other stages of "
                    "sentence-transformers. Got ",
                    stage.type);
}

// A causal model's vector is that of its last token.
sentence::PoolingMode usual_pooling(const char* caller, const std::string& folder) {
  const Settings config(caller, (fs::path(folder) / "config.json").string());
  const nlohmann::json& classes = config.value("architectures");
  const bool is_generator = classes.is_array() && !classes.empty() && classes[0].is_string() &&
                            classes[0].get<std::string>().ends_with("ForCausalLM");
  return is_generator && config.flag("is_causal", true) ? sentence::PoolingMode::LastToken
                                                        : sentence::PoolingMode::Mean;
}

}  // namespace

Elementwise activation_at(const Settings& config, const char* name) {
  const std::string path = config.text(name);
  const std::string last = path.substr(path.rfind('.') + 1);
  for (const char* module :
       {"torch.nn.modules.activation.", "torch.nn.modules.linear.", "torch.nn."}) {
    if (path != module + last) continue;
    try {
      const Elementwise function = elementwise_of(last);
      const bool is_class = function != Elementwise::GELUTanh && function != Elementwise::QuickGELU;
      if (is_class) return function;
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
  if (!has_modules(folder)) return {folder, {{"Transformer", "", "", ""}}};
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

std::vector<SentenceStageSettings> stages_after_first(const char* caller,
                                                      const SentenceModules& modules) {
  if (!has_modules(modules.folder)) {
    return {{sentence::Pooling{{usual_pooling(caller, modules.folder.string())}}, ""}};
  }
  std::vector<SentenceStageSettings> stages;
  for (std::size_t i = 1; i < modules.stages.size(); ++i) {
    if (is_without_effect(caller, modules, modules.stages[i])) continue;
    stages.push_back(
        {stage_in(caller, modules, modules.stages[i]), stage_folder(modules, modules.stages[i])});
  }
  return stages;
}

}  // namespace posenc
