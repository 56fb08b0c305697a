#include "models/sentence/stage_settings.h"
#include "models/config/model_folder.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <set>

#include "models/sentence/pooling.h"
#include "models/sentence/transformer_settings.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWidestStage = 1 << 24;
constexpr int64_t kMostLayers = 1 << 16;
constexpr uint64_t kMostSettings = 256'000'000;  // bytes: WordWeights has a vocabulary in them
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
  const std::string default_name = "sentence_embedding";
  stage.input = feature_in(config, "module_input_name", default_name);
  stage.output =
      feature_in(config, "module_output_name", config.text("module_input_name", default_name));
}

// Without the setting it is Tanh.
Activation activation_in_stage(const Settings& config) {
  if (!config.mentions(kActivationFunction)) return Activation::Tanh;
  return activation_at(config, kActivationFunction);
}

sentence::Stage pooling_in(const Settings& config) {
  return sentence::Pooling{pooling_modes(config), config.flag("include_prompt", true)};
}

sentence::Stage dense_in(const Settings& config) {
  sentence::Dense dense = {config.integer("in_features", 1, kWidestStage),
                           config.integer("out_features", 1, kWidestStage)};
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
  return sentence::LayerNorm{config.integer("dimension", 1, kWidestStage)};
}

sentence::Stage dropout_in(const Settings& config) {
  return sentence::Dropout{config.real("dropout", 0.2)};
}

sentence::Stage weighted_layers_in(const Settings& config) {
  sentence::WeightedLayerPooling stage;
  stage.num_hidden_layers =
      config.integer("num_hidden_layers", stage.num_hidden_layers, 1, kMostLayers);
  stage.layer_start = config.integer("layer_start", stage.layer_start, 0, stage.num_hidden_layers);
  return stage;
}

sentence::Stage word_weights_stage_in(const Settings& config) {
  const nlohmann::json& vocab = config.value("vocab");
  if (!vocab.is_array() || vocab.empty()) config.refuse("vocab", "must be a list of words");
  return sentence::WordWeights{static_cast<int64_t>(vocab.size())};
}

std::vector<int64_t> sizes_in(const Settings& config, const char* name,
                              const std::vector<int64_t>& default_sizes) {
  const std::vector<int64_t> sizes = config.integers_if(name).value_or(default_sizes);
  for (const int64_t size : sizes) {
    if (size < 1 || size > kWidestStage) config.refuse(name, "must be positive numbers");
  }
  return sizes;
}

sentence::Stage cnn_in(const Settings& config) {
  const char* const older = "in_word_embedding_dimension";
  const char* const newer = "in_embedding_dimension";
  sentence::CNN stage = {config.integer(config.has(newer) ? newer : older, 1, kWidestStage)};
  stage.out_channels = config.integer("out_channels", stage.out_channels, 1, kWidestStage);
  stage.kernel_sizes = sizes_in(config, "kernel_sizes", stage.kernel_sizes);
  stage.stride_sizes = sizes_in(config, "stride_sizes", {});
  return stage;
}

struct StageKind {
  const char* name;
  sentence::Stage (*read)(const Settings& config);
  bool may_lack_settings = false;  // git keeps no empty folder
  const char* file = "config.json";
};

constexpr StageKind kStageKinds[] = {{"Pooling", pooling_in},
                                     {"Dense", dense_in},
                                     {"Normalize", normalize_in, true},
                                     {"LayerNorm", layer_norm_in},
                                     {"Dropout", dropout_in, true},
                                     {"WeightedLayerPooling", weighted_layers_in, true},
                                     {"WordWeights", word_weights_stage_in},
                                     {"CNN", cnn_in, false, "cnn_config.json"}};

Settings settings_of_stage(const char* caller, const std::string& folder, const StageKind& kind) {
  const std::string path = (fs::path(folder) / kind.file).string();
  if (kind.may_lack_settings && !io::may_exist(path)) {
    return Settings::of_object(caller, nlohmann::json::object());
  }
  return {caller, path, kMostSettings};
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
    return kind.read(settings_of_stage(caller, stage_folder(modules, stage), kind));
  }
  TORCH_CHECK_VALUE(false, "[", caller, "] ", (modules.folder / "modules.json").string(),
                    ": type must be Transformer or StaticEmbedding, and then Pooling, Dense, "
                    "Normalize, LayerNorm, Dropout, WeightedLayerPooling, WordWeights or CNN; "
                    "posenc has no other stages of sentence-transformers. Got ",
                    stage.type);
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

at::Tensor stage_word_weights(const char* caller, const std::string& folder) {
  return word_weights_in({caller, (fs::path(folder) / "config.json").string(), kMostSettings});
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
    if (is_without_effect(caller, modules, modules.stages[i])) continue;
    stages.push_back(
        {stage_in(caller, modules, modules.stages[i]), stage_folder(modules, modules.stages[i])});
  }
  return stages;
}

}  // namespace posenc
