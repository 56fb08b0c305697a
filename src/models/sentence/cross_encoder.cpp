// read_cross_encoder_folder().

#include <c10/util/Exception.h>

#include <filesystem>
#include <span>

#include "models/config/model_folder.h"
#include "models/lora/adapted_folder.h"
#include "models/sentence/modules.h"
#include "models/sentence/stage_settings.h"
#include "models/sentence/transformer_settings.h"
#include "posenc/models/cross_encoder_folder.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCrossReader = "read_cross_encoder_folder";
constexpr TransformerTask kOfHead[] = {TransformerTask::SequenceClassification};
constexpr TransformerTask kOfStages[] = {TransformerTask::FeatureExtraction};
constexpr TransformerTask kOfTokens[] = {TransformerTask::TextGeneration};

// Releases before 5.4 stored it in config.json.
std::optional<Activation> activation_in(const Settings& own, const fs::path& model) {
  if (own.has("activation_fn")) return activation_at(own, "activation_fn");
  const Settings config(kCrossReader, (model / "config.json").string());
  if (config.value("sentence_transformers").is_object()) {
    const Settings inner = config.inside("sentence_transformers");
    if (inner.has("activation_fn")) return activation_at(inner, "activation_fn");
    if (inner.mentions("activation_fn")) return std::nullopt;
  }
  const char* older = "sbert_ce_default_activation_function";
  if (config.has(older)) return activation_at(config, older);
  return std::nullopt;
}

sentence::LogitScore read_logit_score(const std::string& folder) {
  const Settings config(kCrossReader, (fs::path(folder) / "config.json").string());
  const auto token = [&](const char* name) { return config.integer(name, 0, INT32_MAX); };
  sentence::LogitScore score = {token("true_token_id")};
  if (config.has("false_token_id")) score.false_token_id = token("false_token_id");
  const char* const input = "module_input_name";
  if (config.text(input, "causal_logits") != "causal_logits")
    config.refuse(input, "must be causal_logits");
  return score;
}

// Throws unless the last of the stages makes scores.
void check_last(const SentenceModules& modules) {
  const SentenceModule& last = modules.stages.back();
  const Settings config = settings_or_none(
      kCrossReader, (fs::path(stage_folder(modules, last)) / "config.json").string());
  const bool makes_scores =
      last.kind == "Dense" && config.text("module_output_name", "") == "scores";
  TORCH_CHECK_VALUE(makes_scores, "[", kCrossReader, "] ",
                    (modules.folder / "modules.json").string(),
                    ": must list a Transformer alone, whose head makes the scores, one and a "
                    "LogitScore, or one and stages of which the last is a Dense whose "
                    "module_output_name is scores. Got ",
                    last.type);
}

// What modules.json lists.
void read_listed(const std::string& folder, const std::string& base, CrossEncoderFolder& result) {
  const SentenceModules modules = checked_modules(kCrossReader, folder);
  const auto& stages = modules.stages;
  TORCH_CHECK_VALUE(stages.front().kind == "Transformer", "[", kCrossReader, "] ",
                    (modules.folder / "modules.json").string(),
                    ": the first stage must be Transformer. Got ", stages.front().type);
  result.model = stage_folder(modules, stages.front());
  result.base = config_folder(kCrossReader, result.model, base);
  if (stages.size() == 1) return;
  if (stages.size() == 2 && stages[1].kind == "LogitScore") {
    result.is_causal = true;
    result.logit_score = read_logit_score(stage_folder(modules, stages[1]));
    return;
  }
  check_last(modules);
  SentenceRoute route;
  route.first = sentence::FirstStage::Encoder;
  route.encoder = result.model;
  route.base = result.base;
  result.stages =
      stages_after_first(kCrossReader, modules, stages, route, SentenceKind::CrossEncoder);
}

std::span<const TransformerTask> tasks_of(const CrossEncoderFolder& folder) {
  if (folder.is_causal) return kOfTokens;
  return folder.has_head() ? std::span<const TransformerTask>(kOfHead) : kOfStages;
}

}  // namespace

CrossEncoderFolder read_cross_encoder_folder(const std::string& folder, const std::string& base) {
  check_is_folder(kCrossReader, folder);
  const Settings found = model_settings(kCrossReader, folder);
  const std::string kind = found.text("model_type", "SentenceTransformer");
  const bool is_own = kind == "CrossEncoder";
  const bool is_listed = is_own && has_modules(folder);
  const Settings own = is_own ? found : Settings::of_object(kCrossReader, nlohmann::json::object());
  CrossEncoderFolder result;
  if (is_listed) {
    read_listed(folder, base, result);
  } else {
    result.model = folder;
    result.base = config_folder(kCrossReader, folder, base);
    const auto path = (fs::path(result.base) / "config.json").string();
    result.is_causal = is_generator(Settings(kCrossReader, path));
  }
  result.tokenizer = tokenizer_folder(kCrossReader, result.model, base);
  const auto texts = transformer_settings(kCrossReader, result.model, result.base, tasks_of(result),
                                          is_listed, true);
  if (!is_listed || texts.message_format) {
    result.chat_template =
        chat_template_in(kCrossReader, result.tokenizer, texts.message_format.value_or("auto"));
    TORCH_CHECK_VALUE(!is_listed || result.chat_template, "[", kCrossReader, "] ", result.model,
                      ": must have a chat template, into which its modality_config puts texts");
  }
  result.max_seq_length = texts.max_seq_length;
  result.max_positions = texts.max_positions;
  result.do_lower_case = texts.do_lower_case;
  const PromptSettings prompts = prompts_in(own, {});
  result.prompts = prompts.prompts;
  result.default_prompt_name = prompts.default_name;
  result.activation = activation_in(own, result.base);
  return result;
}

}  // namespace posenc
