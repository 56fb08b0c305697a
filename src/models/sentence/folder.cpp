// read_sentence_folder(), load_sentence_stages() and load_static_embedding().

#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>

#include "io/base/file.h"
#include "models/model_folder.h"
#include "models/sentence/stage_settings.h"
#include "models/settings.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/encoder.h"
#include "posenc/models/sentence_folder.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReader = "read_sentence_folder";
constexpr const char* kStageLoader = "load_sentence_stages";
constexpr const char* kTableLoader = "load_static_embedding";
constexpr int64_t kLongestText = int64_t{1} << 31;

// The settings of the first stage, under any of the names that releases gave the file.
const char* const kTransformerFiles[] = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

Settings settings_or_none(const std::string& path) {
  return io::may_exist(path) ? Settings(kReader, path)
                             : Settings::of_object(kReader, nlohmann::json::object());
}

Settings transformer_settings(const fs::path& folder) {
  for (const char* name : kTransformerFiles) {
    Settings found = settings_or_none((folder / name).string());
    if (!found.empty()) return found;
  }
  return Settings::of_object(kReader, nlohmann::json::object());
}

void check_only(const Settings& config, const char* name, const std::vector<std::string>& known) {
  if (!config.has(name)) return;
  const Settings given = config.inside(name);
  for (const auto& [key, value] : given.object().items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      config.refuse(name, "must not have settings that posenc does not know, such as " + key);
    }
  }
}

void check_is(const Settings& config, const char* name, const char* wanted) {
  if (config.has(name) && config.text(name) != wanted) {
    config.refuse(name, std::string("must be ") + wanted + ", the only one that posenc has");
  }
}

void check_modality(const Settings& config) {
  if (!config.has("modality_config")) return;
  const Settings modality = config.inside("modality_config");
  if (!modality.has("text")) modality.refuse("text", "must be there: posenc encodes text");
  const Settings text = modality.inside("text");
  check_is(text, "method", "forward");
  check_is(text, "method_output_name", "last_hidden_state");
}

// What changes the output of the encoder in ways that posenc lacks.
void check_transformer(const Settings& config) {
  check_is(config, "transformer_task", "feature-extraction");
  check_is(config, "module_output_name", "token_embeddings");
  check_modality(config);
  const std::vector<std::string> lengths = {"max_length", "model_max_length"};
  const std::vector<std::string> rounding = {"add_pooling_layer", "attn_implementation", "dtype",
                                             "torch_dtype"};
  for (const char* name : {"tokenizer_args", "processor_kwargs"}) check_only(config, name, lengths);
  for (const char* name : {"model_args", "model_kwargs"}) check_only(config, name, rounding);
  for (const char* name : {"config_args", "config_kwargs"}) check_only(config, name, {});
  for (const char* name : {"query_length", "document_length"}) {
    if (config.has(name)) config.refuse(name, "must be null: posenc has one length for all texts");
  }
}

std::optional<int64_t> whole_in(const Settings& config, const char* name) {
  if (!config.has(name)) return std::nullopt;
  return config.whole(name, 1, kLongestText);
}

std::optional<int64_t> longest_text(const Settings& config) {
  if (const auto own = whole_in(config, "max_seq_length")) return own;
  for (const char* name : {"tokenizer_args", "processor_kwargs"}) {
    if (!config.has(name)) continue;
    if (const auto length = whole_in(config.inside(name), "model_max_length")) return length;
  }
  return std::nullopt;
}

// Rows of the table of positions that are no positions, as RoBERTa's first ones, do not count.
std::optional<int64_t> table_positions(const EncoderEmbeddingsOptions& options) {
  using embeddings::PositionIds;
  const PositionIds kind = options.position_ids();
  if (kind == PositionIds::None) return std::nullopt;
  // RoBERTa numbers from the row after that of padding.
  const int64_t skipped = kind == PositionIds::FromIds ? options.padding_idx().value_or(0) + 1
                                                       : options.first_position();
  return options.position_rows() - options.position_offset() - skipped;
}

std::optional<int64_t> at_most(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::min(*a, *b) : (a ? a : b);
}

// The rows of the table of positions, and that or fewer as the configuration says.
struct Positions {
  std::optional<int64_t> table, stated;
};

Positions positions_in(const fs::path& folder) {
  const std::string path = (folder / "config.json").string();
  const EncoderOptions options = encoder_options_from_hf(path);
  TORCH_CHECK_VALUE(options.embeddings(), "[", kReader, "] ", folder.string(),
                    ": must be an encoder of text. Got one of images");
  const auto table = table_positions(*options.embeddings());
  const Settings raw(kReader, path);
  const auto stated =
      raw.of(raw.text("model_type", "")).whole_if("max_position_embeddings");  // -1: none
  return {table, at_most(stated && *stated > 0 ? stated : std::nullopt, table)};
}

void read_transformer(const fs::path& folder, SentenceFolder& result) {
  const Settings config = transformer_settings(folder);
  check_transformer(config);
  result.do_lower_case = config.flag("do_lower_case", false);
  const Positions positions = positions_in(folder);
  if (const auto own = longest_text(config)) result.max_seq_length = at_most(own, positions.table);
  result.max_positions = positions.stated;
}

void read_prompts(const Settings& config, SentenceFolder& result) {
  if (config.has("prompts")) {
    const Settings prompts = config.inside("prompts");
    for (const auto& [name, text] : prompts.object().items()) {
      if (!text.is_null()) result.prompts[name] = prompts.text(name);
    }
  }
  result.default_prompt_name = config.text_if("default_prompt_name");
  if (result.default_prompt_name && result.prompts.count(*result.default_prompt_name) == 0) {
    config.refuse("default_prompt_name", "must be the name of one of the prompts");
  }
}

// The width of what the first stage gives.
SentenceStagesOptions first_stage(const SentenceFolder& folder) {
  if (folder.is_static) {
    return SentenceStagesOptions(load_static_embedding(folder.encoder).size(1))
        .takes_sentences(true);
  }
  const auto options = encoder_options_from_hf((fs::path(folder.encoder) / "config.json").string());
  return SentenceStagesOptions(options.encoder().layer().d_model());
}

void load_stage(torch::nn::Module& module, const std::string& folder) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    const auto path = (fs::path(folder) / name).string();
    if (!io::may_exist(path)) continue;
    load_weights(module, path, LoadOptions().cast(true));
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
  const SentenceModules modules = checked_modules(kReader, folder);
  const Settings config =
      settings_or_none((modules.folder / "config_sentence_transformers.json").string());
  if (config.has("model_type") && config.text("model_type") != "SentenceTransformer") {
    config.refuse("model_type", "must be SentenceTransformer, whose vectors posenc computes");
  }
  SentenceFolder result;
  const SentenceModule& first = modules.stages.front();
  result.encoder = result.tokenizer = stage_folder(modules, first);
  result.is_static = first.kind == "StaticEmbedding";
  TORCH_CHECK_VALUE(result.is_static || first.kind == "Transformer", "[", kReader, "] ",
                    (modules.folder / "modules.json").string(),
                    ": the first stage must be Transformer or StaticEmbedding. Got ", first.type);
  if (!result.is_static) read_transformer(result.encoder, result);
  read_prompts(config, result);
  result.truncate_dim = whole_in(config, "truncate_dim");
  stages_after_first(kReader, modules);  // to refuse those that posenc lacks
  return result;
}

SentenceStages load_sentence_stages(const std::string& folder) {
  const SentenceFolder read = read_sentence_folder(folder);
  const auto stages = stages_after_first(kStageLoader, checked_modules(kStageLoader, folder));
  SentenceStagesOptions options = first_stage(read);
  for (const auto& stage : stages) options.stages().push_back(stage.stage);
  const SkipInit skip;
  SentenceStages model(options);
  for (auto& item : model->named_children()) {
    load_stage(*item.value(), stages.at(std::stoul(item.key()) - 1).folder);
  }
  model->eval();
  return model;
}

std::optional<Elementwise> cross_encoder_activation(const std::string& folder) {
  const fs::path path(folder);
  const Settings own = settings_or_none((path / "config_sentence_transformers.json").string());
  if (own.has("activation_fn")) return activation_at(own, "activation_fn");
  const Settings config(kReader, (path / "config.json").string());
  if (config.value("sentence_transformers").is_object()) {
    const Settings inner = config.inside("sentence_transformers");
    if (inner.has("activation_fn")) return activation_at(inner, "activation_fn");
  }
  const char* older = "sbert_ce_default_activation_function";
  if (config.has(older)) return activation_at(config, older);
  return std::nullopt;
}

std::optional<int64_t> encoder_max_positions(const std::string& folder) {
  return positions_in(folder).stated;
}

torch::Tensor load_static_embedding(const std::string& folder) {
  const std::string path = weights_in(kTableLoader, folder);
  const StateDict tensors = load_tensors(path);
  return io::in_context(kTableLoader, path, [&] {
    if (tensors.contains("embedding.weight")) return tensors["embedding.weight"].to(at::kFloat);
    if (!tensors.contains("embeddings")) throw missing_tensor("embedding.weight");
    check_model2vec(tensors);
    return folded(tensors);
  });
}

}  // namespace posenc
