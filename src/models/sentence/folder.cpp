// read_sentence_folder(), load_sentence_stages() and load_static_embedding().

#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "models/config/model_folder.h"
#include "models/config/settings.h"
#include "models/lora/adapted_folder.h"
#include "models/sentence/colbert.h"
#include "models/sentence/stage_settings.h"
#include "models/sentence/transformer_settings.h"
#include "models/types/leftovers.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/encoder.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/weights/manifest.h"
#include "weights/common/file.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReader = "read_sentence_folder";
constexpr const char* kStageLoader = "load_sentence_stages";
constexpr const char* kTableLoader = "load_static_embedding";
constexpr int64_t kWidestVector = int64_t{1} << 31;

// The width of what the first stage of a route gives.
int64_t first_width(const SentenceRoute& route) {
  using sentence::FirstStage;
  const std::string config = (fs::path(route.base) / "config.json").string();
  switch (route.first) {
    case FirstStage::Encoder: {
      const EncoderOptions options = encoder_options_from_hf(config);
      return options.output_dim().value_or(options.encoder().layer().d_model());
    }
    case FirstStage::MaskedHead: {
      const Settings settings(kStageLoader, config);
      return settings.of(settings.text("model_type", "")).integer("vocab_size", 1, kWidestVector);
    }
    case FirstStage::StaticEmbedding: return load_static_embedding(route.encoder).size(1);
    case FirstStage::Tokens: break;
  }
  return 0;
}

SentenceStagesOptions stages_options(const SentenceFolder& folder, const SentenceRoute& route) {
  auto options = SentenceStagesOptions(first_width(route))
                     .takes_sentences(route.first == sentence::FirstStage::StaticEmbedding);
  if (folder.kind == SentenceKind::MultiVector) options.result(sentence::Feature::Tokens);
  for (const auto& stage : route.stages) options.stages().push_back(stage.stage);
  return options;
}

// The file of a stage's weights.
std::string weights_of(const SentenceStageFolder& stage) {
  if (!stage.weights.empty()) return stage.weights;
  for (const char* name : stages::kStageWeights) {
    const auto path = (fs::path(stage.folder) / name).string();
    if (io::may_exist(path)) return path;
  }
  throw WeightsError(WeightsErrorCode::NotFound, "must hold model.safetensors or pytorch_model.bin")
      .in_file(stage.folder)
      .in_function(kStageLoader);
}

void load_stage(torch::nn::Module& module, const std::string& part,
                const SentenceStageFolder& stage, const LoadOptions& options, LoadReport& report) {
  const StageKind& kind = kind_of(stage.stage);
  if (kind.load != nullptr)
    return kind.load(settings_of_stage(kStageLoader, stage.folder, kind), module);
  if (!stage.weights.empty() && std::holds_alternative<sentence::Dense>(stage.stage)) {
    auto& linear = *module.named_children()["linear"];
    const auto load = LoadOptions().cast(true).prefix(stage.prefix);
    for (const std::string& loaded : load_weights(linear, stage.weights, load).loaded)
      report.loaded.push_back(part + ".linear." + loaded);
    return check_finite(
        kStageLoader, linear, stage.weights,
        [&](const std::string& key) { return stage.prefix + key; },
        [](const std::string&) { return false; });
  }
  const std::string path = weights_of(stage);
  if (path.ends_with(".json")) return;  // weights by tokens, for which the tokenizer is needed
  auto load = LoadOptions().cast(true).allow_unexpected(options.allow_unexpected());
  if (kind.key_map != nullptr) {
    std::vector<std::string> names;
    for (const ManifestTensor& tensor : read_manifest(path).tensors) names.push_back(tensor.name);
    load.key_map(kind.key_map(names));
  }
  const LoadReport own = load_weights(module, path, load);
  for (const std::string& loaded : own.loaded) report.loaded.push_back(part + "." + loaded);
  report.unexpected.insert(report.unexpected.end(), own.unexpected.begin(), own.unexpected.end());
  check_finite(
      kStageLoader, module, path, [](const std::string& key) { return key; },
      [](const std::string&) { return false; });
}

// Whether a class has that similarity; a name of others in its folder stands for none.
bool compares_by(SentenceKind kind, const std::optional<std::string>& name) {
  using Names = std::vector<std::string>;
  const Names known = kind == SentenceKind::MultiVector
                          ? Names{"maxsim", "meanmaxsim"}
                          : Names{"cosine", "dot", "euclidean", "manhattan"};
  return name && std::find(known.begin(), known.end(), *name) != known.end();
}

// Row i is embeddings[mapping[i]] * weights[i].
at::Tensor folded(const StateDict& tensors) {
  at::Tensor table = tensors["embeddings"];
  if (tensors.contains("mapping")) table = table.index_select(0, tensors["mapping"].to(at::kLong));
  table = table.to(at::kFloat);
  if (tensors.contains("weights")) table = table * tensors["weights"].to(at::kFloat).unsqueeze(1);
  return table.contiguous();
}

void check_model2vec(const StateDict& tensors) {
  const auto fault = [](const char* name, const std::string& rule) {
    return WeightsError(WeightsErrorCode::Corrupt, rule).in_tensor(name);
  };
  const at::Tensor& table = tensors["embeddings"];
  if (table.dim() != 2) throw fault("embeddings", "must be (V, D)");
  int64_t rows = table.size(0);
  if (tensors.contains("mapping")) {
    const at::Tensor& mapping = tensors["mapping"];
    const bool fits = mapping.dim() == 1 && at::isIntegralType(mapping.scalar_type(), false) &&
                      (mapping.numel() == 0 || (mapping.min().item<int64_t>() >= 0 &&
                                                mapping.max().item<int64_t>() < rows));
    if (!fits) throw fault("mapping", "must be the numbers of rows of embeddings");
    rows = mapping.size(0);
  }
  if (tensors.contains("weights") && tensors["weights"].sizes() != at::IntArrayRef({rows})) {
    throw fault("weights", "must be a weight for each token");
  }
}

}  // namespace

SentenceFolder read_sentence_folder(const std::string& folder, std::optional<SentenceKind> kind,
                                    const std::string& base) {
  const SentenceModules modules = sentence_modules(kReader, folder, kind, base);
  SentenceFolder result = {kind.value_or(sentence_kind(kReader, folder, base)), {}};
  const ColbertSettings colbert = result.kind == SentenceKind::MultiVector
                                      ? colbert_settings(kReader, modules)
                                      : ColbertSettings();
  result.routes = sentence_routes(kReader, modules, result.kind, base, colbert);
  result.has_modules = modules.is_listed;
  const Settings config = modules.is_listed
                              ? model_settings(kReader, folder)
                              : Settings::of_object(kReader, nlohmann::json::object());
  const PromptSettings prompts = prompts_in(config, {{"query", ""}, {"document", ""}});
  result.prompts = prompts.prompts;
  for (const auto& [name, marker] : colbert.markers)
    result.prompts[name] = marked(marker, result.prompts[name]);
  result.default_prompt_name = prompts.default_name;
  const auto size_in = [&](const char* name) -> std::optional<int64_t> {
    if (!config.has(name)) return std::nullopt;
    return config.integer(name, 1, kWidestVector);
  };
  result.truncate_dim = size_in("truncate_dim");
  result.max_active_dims = size_in("max_active_dims");
  result.similarity_fn_name = config.text_if("similarity_fn_name");
  if (!compares_by(result.kind, result.similarity_fn_name)) result.similarity_fn_name.reset();
  return result;
}

std::vector<SentenceStages> load_sentence_stages(const SentenceFolder& folder,
                                                 const LoadOptions& options) {
  std::vector<SentenceStages> all;
  std::map<std::string, std::shared_ptr<torch::nn::Module>> loaded;  // by folder
  LoadReport report;
  for (const SentenceRoute& route : folder.routes) {
    const SkipInit skip;
    SentenceStages model(stages_options(folder, route));
    const std::string part = all.empty() ? "" : "routes." + std::to_string(all.size()) + ".";
    for (const auto& item : model->named_children()) {
      const SentenceStageFolder& stage = route.stages.at(std::stoul(item.key()) - 1);
      const auto [known, is_new] = loaded.emplace(stage.folder, item.value());
      if (is_new) load_stage(*item.value(), part + item.key(), stage, options, report);
      if (!is_new) model->replace_module(item.key(), known->second);
    }
    TORCH_CHECK_VALUE(all.empty() || all.front()->width() == model->width(), "[", kStageLoader,
                      "] the vectors of all routes must have one width. Got ", all.front()->width(),
                      " and ", model->width());
    model->eval();
    all.push_back(std::move(model));
  }
  if (options.report() != nullptr) *options.report() = std::move(report);
  return all;
}

SentenceStages load_sentence_stages(const std::string& folder, const LoadOptions& options,
                                    sentence::Task task) {
  SentenceFolder read = read_sentence_folder(folder, std::nullopt, options.base());
  read.routes = {read.route(task)};
  return load_sentence_stages(read, options).front();
}

torch::Tensor load_static_embedding(const std::string& folder, const LoadOptions& options) {
  check_folder_options(kTableLoader, options);
  refuse_adapters(kTableLoader, options, "a table of tokens has no layers");
  const std::string path = weights_in(kTableLoader, folder);
  return io::in_context(kTableLoader, path, [&] {
    const io::FileSource file(path);
    const io::RenamedSource source(file, options.prefix(), options.key_map());
    Leftovers leftovers(source, options, {});
    leftovers.add_unused_patterns(source);
    StateDict tensors;
    for (const char* name : {"embedding.weight", "embeddings", "mapping", "weights"}) {
      const auto* entry = find_entry(source, options.prefix() + name);
      const bool is_other = tensors.contains("embedding.weight") || entry == nullptr;
      if (is_other) continue;
      const auto index = static_cast<std::size_t>(entry - source.entries().data());
      tensors.insert(name, source.tensor(index));
      leftovers.add_read(entry->name, name);
    }
    const bool is_module = tensors.contains("embedding.weight");
    if (!is_module && !tensors.contains("embeddings"))
      throw missing_tensor(source, options.prefix() + "embedding.weight");
    if (!is_module) check_model2vec(tensors);
    source.check_unchanged();
    leftovers.finish();
    return is_module ? tensors["embedding.weight"].to(at::kFloat) : folded(tensors);
  });
}

}  // namespace posenc
