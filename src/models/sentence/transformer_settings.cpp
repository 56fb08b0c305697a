#include "models/sentence/transformer_settings.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "posenc/models/encoder.h"
#include "posenc/models/sentence_folder.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestText = int64_t{1} << 31;

// The settings of the first stage, under any of the names that releases gave the file.
const char* const kTransformerFiles[] = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

// The tokenizer's, by the names of older and newer releases.
const char* const kTokenizerSettings[] = {"tokenizer_args", "processor_kwargs"};
constexpr const char* kLength = "model_max_length";

Settings settings_of_first(const char* caller, const fs::path& folder) {
  for (const char* name : kTransformerFiles) {
    Settings found = settings_or_none(caller, (folder / name).string());
    if (!found.empty()) return found;
  }
  return Settings::of_object(caller, nlohmann::json::object());
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

void check_is(const Settings& config, const char* name, const char* expected) {
  if (config.has(name) && config.text(name) != expected) {
    config.refuse(name, std::string("must be ") + expected + ", the only one that posenc has");
  }
}

struct TaskRow {
  TransformerTask task;
  const char* name;                // `transformer_task`
  const char* output;              // what of the model's output
  const char* module_output_name;  // what it is called afterwards
};

constexpr TaskRow kTasks[] = {
    {TransformerTask::FeatureExtraction, "feature-extraction", "last_hidden_state",
     "token_embeddings"},
    {TransformerTask::FillMask, "fill-mask", "logits", "token_embeddings"},
    {TransformerTask::SequenceClassification, "sequence-classification", "logits", "scores"},
    {TransformerTask::TextGeneration, "text-generation", "logits", "causal_logits"},
};

const TaskRow& row_of(TransformerTask task) {
  return *std::find_if(std::begin(kTasks), std::end(kTasks),
                       [&](const TaskRow& row) { return row.task == task; });
}

const TaskRow& task_in(const Settings& config, std::span<const TransformerTask> tasks) {
  const char* const name = "transformer_task";
  const std::string given = config.text(name, row_of(tasks.front()).name);
  std::string known;
  for (const TransformerTask task : tasks) {
    const TaskRow& row = row_of(task);
    if (given == row.name) return row;
    known += (known.empty() ? "" : " or ") + std::string(row.name);
  }
  config.refuse(name, "must be " + known + " in a model of this class");
}

// Texts or messages of them; others, such as images, are ignored. Returns the format of messages.
std::optional<std::string> format_in(const Settings& config, const TaskRow& task,
                                     bool takes_messages) {
  if (!config.has("modality_config")) return std::nullopt;
  const Settings modality = config.inside("modality_config");
  const bool is_message = modality.has("message");
  if (is_message && !takes_messages) {
    modality.refuse("message", "must not be there: posenc puts no text into a chat template");
  }
  if (!is_message && !modality.has("text"))
    modality.refuse("text", "must be there: posenc encodes text");
  const Settings used = modality.inside(is_message ? "message" : "text");
  check_is(used, "method", "forward");
  check_is(used, "method_output_name", task.output);
  if (!is_message) return std::nullopt;
  const std::string format = used.text("format", "auto");
  if (format != "auto" && format != "flat" && format != "structured")
    used.refuse("format", "must be auto, flat or structured");
  return format;
}

// What a tokenizer is called with; of that, only the length may differ from the usual.
void check_processing(const Settings& config) {
  const char* const name = "processing_kwargs";
  if (!config.has(name)) return;
  const Settings given = config.inside(name);
  for (const auto& [key, value] : given.object().items()) {
    if (key != "text" && !(value.is_object() && value.empty())) {
      given.refuse(key, "must be empty: posenc knows settings of `text` only");
    }
  }
  check_only(given, "text", {"max_length"});
}

void check_transformer(const Settings& config, const TaskRow& task) {
  check_is(config, "module_output_name", task.module_output_name);
  check_processing(config);
  const std::vector<std::string> lengths = {"max_length", kLength};
  const std::vector<std::string> rounding = {"add_pooling_layer", "attn_implementation", "dtype",
                                             "torch_dtype"};
  for (const char* name : kTokenizerSettings) check_only(config, name, lengths);
  for (const char* name : {"model_args", "model_kwargs"}) check_only(config, name, rounding);
  for (const char* name : {"config_args", "config_kwargs"}) check_only(config, name, {});
}

std::optional<int64_t> length_in(const Settings& config, const char* name) {
  if (!config.has(name)) return std::nullopt;
  return config.integer(name, 1, kLongestText);
}

// That of each call to the tokenizer.
std::optional<int64_t> length_of_call(const Settings& config) {
  const char* const name = "processing_kwargs";
  if (!config.has(name) || !config.inside(name).has("text")) return std::nullopt;
  return length_in(config.inside(name).inside("text"), "max_length");
}

// That of a call to the tokenizer, the tokenizer's own, and that of the stage, in this order.
std::optional<int64_t> longest_text(const Settings& config) {
  if (const auto length = length_of_call(config)) return length;
  for (const char* name : kTokenizerSettings) {
    if (!config.has(name)) continue;
    if (const auto length = length_in(config.inside(name), kLength)) return length;
  }
  return length_in(config, "max_seq_length");
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

std::optional<sentence::QueryExpansion> expansion_in(const Settings& config,
                                                     std::optional<int64_t> positions) {
  using Strategy = sentence::QueryExpansion::Strategy;
  const char* const name = "query_expansion";
  if (!config.has(name)) return std::nullopt;
  check_only(config, name, {"strategy", "length", "attend", "token"});
  const Settings given = config.inside(name);
  const std::string strategy = given.text("strategy");
  if (strategy != "fixed" && strategy != "min") given.refuse("strategy", "must be fixed or min");
  sentence::QueryExpansion expansion = {
      strategy == "fixed" ? Strategy::Fixed : Strategy::Min,
      given.integer("length", 1, positions.value_or(kLongestText))};
  expansion.attend = given.flag("attend", false);
  expansion.token = given.text_if("token");
  const auto most = length_in(config, "query_length");
  if (most && *most < expansion.length)
    config.refuse("query_length", "must not be below the length of query_expansion, " +
                                      std::to_string(expansion.length));
  return expansion;
}

// The rows of the table of positions, and that or fewer as the configuration says.
struct Positions {
  std::optional<int64_t> table, stated;
};

Positions positions_in(const char* caller, const fs::path& folder) {
  const std::string path = (folder / "config.json").string();
  const EncoderOptions options = encoder_options_from_hf(path);
  TORCH_CHECK_VALUE(options.embeddings(), "[", caller, "] ", folder.string(),
                    ": must be an encoder of text. Got one of images");
  const auto table = table_positions(*options.embeddings());
  const Settings raw(caller, path);
  const auto stated =
      raw.of(raw.text("model_type", "")).integer_if("max_position_embeddings");  // -1: none
  return {table, at_most(stated && *stated > 0 ? stated : std::nullopt, table)};
}

}  // namespace

Settings settings_or_none(const char* caller, const std::string& path) {
  return io::may_exist(path) ? Settings(caller, path)
                             : Settings::of_object(caller, nlohmann::json::object());
}

TransformerSettings transformer_settings(const char* caller, const fs::path& folder,
                                         const fs::path& model,
                                         std::span<const TransformerTask> tasks, bool is_listed,
                                         bool takes_messages, const nlohmann::json& defaults) {
  const Positions positions = positions_in(caller, model);
  TransformerSettings result = {tasks.front()};
  result.max_positions = positions.stated;
  if (!is_listed && defaults.empty()) return result;
  Settings config = is_listed ? settings_of_first(caller, folder)
                              : Settings::of_object(caller, nlohmann::json::object());
  for (const auto& [name, value] : defaults.items())
    if (!config.mentions(name)) config.set(name, value);
  const TaskRow& task = task_in(config, tasks);
  check_transformer(config, task);
  result.task = task.task;
  result.message_format = format_in(config, task, takes_messages);
  if (const auto own = longest_text(config)) result.max_seq_length = at_most(own, positions.table);
  const auto length_of_task = [&](const char* name) {
    const auto length = length_in(config, name);
    return length && !length_of_call(config) ? at_most(length, positions.table) : std::nullopt;
  };
  result.query_length = length_of_task("query_length");
  result.document_length = length_of_task("document_length");
  result.query_expansion = expansion_in(config, positions.table);
  result.do_lower_case = config.flag("do_lower_case", false);
  return result;
}

std::optional<int64_t> max_tokens_of_text(std::optional<int64_t> max_seq_length,
                                          std::optional<int64_t> model_max_length,
                                          std::optional<int64_t> max_positions) {
  return max_seq_length ? max_seq_length : at_most(model_max_length, max_positions);
}

std::optional<int64_t> max_tokens_of_text(const SentenceRoute& route, sentence::Task task,
                                          std::optional<int64_t> model_max_length) {
  using sentence::Task;
  const auto& expansion = route.query_expansion;
  if (task == Task::Query && expansion &&
      expansion->strategy == sentence::QueryExpansion::Strategy::Fixed)
    return expansion->length;
  if (task == Task::Query && route.query_length) return route.query_length;
  if (task == Task::Document && route.document_length) return route.document_length;
  return max_tokens_of_text(route.max_seq_length, model_max_length, route.max_positions);
}

std::string named_prompt(const std::map<std::string, std::string>& prompts,
                         const std::string& name) {
  const auto found = prompts.find(name);
  if (found != prompts.end()) return found->second;
  if (name.empty()) return "";
  std::string known;
  for (const auto& [one, text] : prompts) known += (known.empty() ? "" : ", ") + one;
  TORCH_CHECK_VALUE(false, "[named_prompt] the name of a prompt must be one of the folder's (",
                    known.empty() ? "it has none" : known, "). Got ", name);
}

PromptSettings prompts_in(const Settings& config, std::map<std::string, std::string> defaults) {
  PromptSettings result = {std::move(defaults), config.text_if("default_prompt_name")};
  if (config.has("prompts")) {
    const Settings prompts = config.inside("prompts");
    for (const auto& [name, text] : prompts.object().items()) {
      result.prompts[name] = text.is_null() ? "" : prompts.text(name);
    }
  }
  if (result.default_name && result.prompts.count(*result.default_name) == 0) {
    config.refuse("default_prompt_name", "must be the name of one of the prompts");
  }
  return result;
}

}  // namespace posenc
