#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "models/config/settings.h"

namespace posenc {

/// The settings in a file that may be absent; then there are none.
Settings settings_or_none(const char* caller, const std::string& path);

/// What a first stage is asked for: words of sentence_bert_config.json.
struct TransformerTask {
  const char* task;                ///< `transformer_task`
  const char* output;              ///< what of the model's output
  const char* module_output_name;  ///< what it is called afterwards
};

/// How texts are given to the model of a first stage.
struct TransformerSettings {
  /// Most tokens, as the folder says, but no more than the model has positions for.
  std::optional<int64_t> max_seq_length = std::nullopt;
  /// Those that it has positions for.
  std::optional<int64_t> max_positions = std::nullopt;
  bool do_lower_case = false;
};

/// Reads those of the model in `folder`, from its sentence_bert_config.json if `is_listed`, by a
/// modules.json. Throws c10::ValueError for settings that change the model's output in ways that
/// posenc lacks.
TransformerSettings transformer_settings(const char* caller, const std::filesystem::path& folder,
                                         const TransformerTask& task, bool is_listed);

/// Throws c10::ValueError if the tokenizer in `folder` has a chat template: sentence-transformers
/// puts the texts of a model without a modules.json into it.
void check_no_chat_template(const char* caller, const std::filesystem::path& folder);

/// Prompts by name, and that of texts without another.
struct PromptSettings {
  std::map<std::string, std::string> prompts;
  std::optional<std::string> default_name;
};

/// Those of a config_sentence_transformers.json, added to `defaults`, which every model of a kind
/// has. Throws c10::ValueError for a default that is none of them.
PromptSettings prompts_in(const Settings& config, std::map<std::string, std::string> defaults);

}  // namespace posenc
