#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "models/config/settings.h"
#include "posenc/models/cross_encoder_folder.h"
#include "posenc/models/sentence_folder.h"

namespace posenc {

/// The settings in a file that may be absent; then there are none.
Settings settings_or_none(const char* caller, const std::string& path);

/// What a first stage is asked for: `transformer_task` of sentence_bert_config.json.
enum class TransformerTask { FeatureExtraction, FillMask, SequenceClassification, TextGeneration };

/// How texts are given to the model of a first stage.
struct TransformerSettings {
  TransformerTask task;
  /// Most tokens, as the folder says, but no more than the model has positions for.
  std::optional<int64_t> max_seq_length = std::nullopt;
  /// Those that it has positions for.
  std::optional<int64_t> max_positions = std::nullopt;
  /// As in SentenceRoute.
  std::optional<int64_t> query_length = std::nullopt, document_length = std::nullopt;
  std::optional<sentence::QueryExpansion> query_expansion = std::nullopt;
  bool do_lower_case = false;
  /// Whether texts are messages, and how these are: `auto`, `flat` or `structured`.
  std::optional<std::string> message_format = std::nullopt;
};

/// Reads those of the stage in `folder`, from its sentence_bert_config.json if `is_listed`, by a
/// modules.json, and from the config.json in `model`; `defaults` are those that the file lacks. Its
/// task, the first of `tasks` if there is none, must be one of those. Throws c10::ValueError for
/// settings that change the model's output in ways that posenc lacks, among them messages unless
/// `takes_messages`.
TransformerSettings transformer_settings(const char* caller, const std::filesystem::path& folder,
                                         const std::filesystem::path& model,
                                         std::span<const TransformerTask> tasks, bool is_listed,
                                         bool takes_messages = false,
                                         const nlohmann::json& defaults = nlohmann::json::object());

/// The folder of a tokenizer's chat templates, but for that in chat_template.jinja.
constexpr const char* kChatTemplates = "additional_chat_templates";

/// That of this name of the chat templates of the tokenizer in `folder`, if it has it.
std::optional<std::string> chat_template_source(const char* caller,
                                                const std::filesystem::path& folder,
                                                const std::string& name);
/// The chat template of the tokenizer in `folder`, if it has one, for messages of that format.
std::optional<sentence::ChatTemplate> chat_template_in(const char* caller,
                                                       const std::filesystem::path& folder,
                                                       const std::string& format);

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
