// read_sentence_folder(), load_sentence_stages() and load_static_embedding().

#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>

#include "models/config/model_folder.h"
#include "models/config/settings.h"
#include "models/sentence/stage_settings.h"
#include "models/sentence/transformer_settings.h"
#include "models/types/leftovers.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/encoder.h"
#include "posenc/models/sentence_folder.h"
#include "weights/common/file.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReader = "read_sentence_folder";
constexpr const char* kStageLoader = "load_sentence_stages";
constexpr const char* kTableLoader = "load_static_embedding";
constexpr int64_t kWidestVector = int64_t{1} << 31;
constexpr TransformerTask kFeatures = {"feature-extraction", "last_hidden_state",
                                       "token_embeddings"};

// The width of what the first stage gives.
SentenceStagesOptions first_stage(const SentenceFolder& folder) {
  if (folder.is_static) {
    return SentenceStagesOptions(load_static_embedding(folder.encoder).size(1))
        .takes_sentences(true);
  }
  const auto options = encoder_options_from_hf((fs::path(folder.encoder) / "config.json").string());
  return SentenceStagesOptions(options.encoder().layer().d_model());
}

void load_stage(torch::nn::Module& module, const std::string& part,
                const SentenceStageSettings& stage, const LoadOptions& options,
                LoadReport& report) {
  const std::string& folder = stage.folder;
  const StageKind& kind = kind_of(stage.stage);
  if (kind.load != nullptr) {
    kind.load(settings_of_stage(kStageLoader, folder, kind), module);
    return;
  }
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    const auto path = (fs::path(folder) / name).string();
    if (!io::may_exist(path)) continue;
    const LoadReport own = load_weights(
        module, path, LoadOptions().cast(true).allow_unexpected(options.allow_unexpected()));
    for (const std::string& loaded : own.loaded) report.loaded.push_back(part + "." + loaded);
    report.unexpected.insert(report.unexpected.end(), own.unexpected.begin(), own.unexpected.end());
    return check_finite(
        kStageLoader, module, path, [](const std::string& key) { return key; },
        [](const std::string&) { return false; });
  }
  throw WeightsError(WeightsErrorCode::NotFound, "must hold model.safetensors or pytorch_model.bin")
      .in_file(folder)
      .in_function(kStageLoader);
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

SentenceFolder read_sentence_folder(const std::string& folder) {
  const SentenceModules modules = sentence_modules(kReader, folder);
  const bool is_listed = modules.is_listed;
  SentenceFolder result;
  const SentenceModule& first = modules.stages.front();
  result.encoder = result.tokenizer = stage_folder(modules, first);
  result.is_static = first.kind == "StaticEmbedding";
  result.has_modules = is_listed;
  TORCH_CHECK_VALUE(result.is_static || first.kind == "Transformer", "[", kReader, "] ",
                    (modules.folder / "modules.json").string(),
                    ": the first stage must be Transformer or StaticEmbedding. Got ", first.type);
  if (!is_listed) check_no_chat_template(kReader, result.encoder);
  if (!result.is_static) {
    const auto texts = transformer_settings(kReader, result.encoder, kFeatures, is_listed);
    result.max_seq_length = texts.max_seq_length;
    result.max_positions = texts.max_positions;
    result.do_lower_case = texts.do_lower_case;
  }
  const Settings config = is_listed ? model_settings(kReader, folder)
                                    : Settings::of_object(kReader, nlohmann::json::object());
  const PromptSettings prompts = prompts_in(config, {{"query", ""}, {"document", ""}});
  result.prompts = prompts.prompts;
  result.default_prompt_name = prompts.default_name;
  if (config.has("truncate_dim")) {
    result.truncate_dim = config.integer("truncate_dim", 1, kWidestVector);
  }
  stages_after_first(kReader, modules);  // to refuse those that posenc lacks
  return result;
}

SentenceStages load_sentence_stages(const std::string& folder, const LoadOptions& load) {
  const SentenceFolder read = read_sentence_folder(folder);
  const auto stages = stages_after_first(kStageLoader, sentence_modules(kStageLoader, folder));
  SentenceStagesOptions options = first_stage(read);
  for (const auto& stage : stages) options.stages().push_back(stage.stage);
  const SkipInit skip;
  SentenceStages model(options);
  LoadReport report;
  for (auto& item : model->named_children()) {
    load_stage(*item.value(), item.key(), stages.at(std::stoul(item.key()) - 1), load, report);
  }
  if (load.report() != nullptr) *load.report() = std::move(report);
  model->eval();
  return model;
}

torch::Tensor load_static_embedding(const std::string& folder, const LoadOptions& options) {
  check_folder_options(kTableLoader, options);
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
