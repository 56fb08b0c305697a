// read_cross_encoder_folder().

#include <c10/util/Exception.h>

#include <filesystem>

#include "models/config/model_folder.h"
#include "models/lora/adapted_folder.h"
#include "models/sentence/modules.h"
#include "models/sentence/stage_settings.h"
#include "models/sentence/transformer_settings.h"
#include "posenc/models/sentence_folder.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCrossReader = "read_cross_encoder_folder";
constexpr TransformerTask kScores[] = {TransformerTask::SequenceClassification};

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

// The folder of the model that modules.json lists.
std::string listed_model(const std::string& folder) {
  const SentenceModules modules = checked_modules(kCrossReader, folder);
  const bool is_alone = modules.stages.size() == 1 && modules.stages[0].kind == "Transformer";
  TORCH_CHECK_VALUE(is_alone, "[", kCrossReader, "] ", (modules.folder / "modules.json").string(),
                    ": must list a Transformer alone, whose head makes the scores. Got ",
                    modules.stages.back().type);
  return stage_folder(modules, modules.stages[0]);
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
  result.model = is_listed ? listed_model(folder) : folder;
  const std::string config = config_folder(kCrossReader, result.model, base);
  result.tokenizer = tokenizer_folder(kCrossReader, result.model, base);
  const auto texts = transformer_settings(kCrossReader, result.model, config, kScores, is_listed);
  result.max_seq_length = texts.max_seq_length;
  result.max_positions = texts.max_positions;
  result.do_lower_case = texts.do_lower_case;
  const PromptSettings prompts = prompts_in(own, {});
  result.prompts = prompts.prompts;
  result.default_prompt_name = prompts.default_name;
  result.activation = activation_in(own, config);
  return result;
}

}  // namespace posenc
