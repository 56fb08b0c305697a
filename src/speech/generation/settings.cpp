#include "speech/generation/settings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace posenc::speech {
namespace {

using nlohmann::json;

// What transformers' generate() takes for Whisper beside the settings of all models, and what of it
// a call alone has.
constexpr const char* kNames[] = {"prompt_ids",
                                  "prompt_condition_type",
                                  "seed",
                                  "language",
                                  "task",
                                  "is_multilingual",
                                  "return_timestamps",
                                  "logprob_threshold",
                                  "compression_ratio_threshold",
                                  "no_speech_threshold",
                                  "condition_on_prev_tokens",
                                  "max_initial_timestamp_index"};
constexpr const char* kOfCalls[] = {"prompt_ids", "prompt_condition_type", "seed"};
// Settings that do nothing: temperature alone says whether tokens are drawn, and sounds have no
// ids.
constexpr const char* kUnread[] = {"do_sample", "temperature", "encoder_repetition_penalty",
                                   "encoder_no_repeat_ngram_size"};

bool is_given(const Settings& settings, const char* name) {
  return !settings.label_of(name).empty() && settings.has(name);
}

TokenMap token_map(const Settings& settings, const char* name, int64_t vocab) {
  TokenMap ids;
  if (!settings.has(name)) return ids;
  const std::string rule = "must be an object of tokens in [0, " + std::to_string(vocab) + ")";
  if (!settings.value(name).is_object()) settings.refuse(name, rule);
  for (const auto& [text, id] : settings.value(name).items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(vocab))
      settings.refuse(name, rule, id);
    ids[text] = id.get<int64_t>();
  }
  return ids;
}

// A position and a token, or null, each: those from position 1 on.
std::vector<std::optional<int64_t>> forced_tokens(const Settings& settings, int64_t vocab) {
  constexpr const char* name = "forced_decoder_ids";
  const std::string rule = "must be a list of pairs of a position and a token in [0, " +
                           std::to_string(vocab) + "), or null";
  const json& list = settings.given(name);
  if (list.is_null()) return {};
  if (!list.is_array()) settings.refuse(name, rule);
  std::vector<std::optional<int64_t>> tokens;
  for (const json& pair : list) {
    const bool is_pair = pair.is_array() && pair.size() == 2 && pair[0].is_number_integer();
    const bool has_token =
        is_pair && pair[1].is_number_unsigned() && pair[1] < static_cast<uint64_t>(vocab);
    if (!is_pair || !(has_token || pair[1].is_null())) settings.refuse(name, rule, pair);
    const auto next = static_cast<int64_t>(tokens.size()) + 1;
    if (pair[0] != next && tokens.empty()) return {};  // transformers ignores such lists
    if (pair[0] != next)
      settings.refuse(name, "must have position " + std::to_string(next) + " here", pair);
    tokens.push_back(has_token ? std::optional(pair[1].get<int64_t>()) : std::nullopt);
  }
  return tokens;
}

std::vector<LayerHead> layer_heads(const Settings& settings, const ModelSizes& sizes) {
  constexpr const char* name = "alignment_heads";
  if (!settings.has(name)) settings.refuse(name, "must be set for the times of words");
  const std::string rule = "must be a list of pairs of a layer in [0, " +
                           std::to_string(sizes.decoder_layers) + ") and a head in [0, " +
                           std::to_string(sizes.decoder_heads) + ")";
  const json& list = settings.value(name);
  if (!list.is_array() || list.empty()) settings.refuse(name, rule);
  std::vector<LayerHead> heads;
  const auto is_below = [](const json& index, int64_t end) {
    return index.is_number_unsigned() && index < static_cast<uint64_t>(end);
  };
  for (const json& pair : list) {
    if (!pair.is_array() || pair.size() != 2 || !is_below(pair[0], sizes.decoder_layers) ||
        !is_below(pair[1], sizes.decoder_heads))
      settings.refuse(name, rule, pair);
    heads.push_back({.layer = pair[0].get<int64_t>(), .head = pair[1].get<int64_t>()});
  }
  return heads;
}

int64_t median_width(const Settings& config) {
  constexpr const char* name = "median_filter_width";
  constexpr int64_t kMost = 1 << 20;
  const int64_t width = config.integer(name, 7, 1, kMost);
  if (width % 2 == 0) config.refuse(name, "must be odd");
  return width;
}

// One, or a list of one for each sound.
void read_language(const Settings& settings, RecognitionSettings& result) {
  constexpr const char* name = "language";
  const json& value = settings.value(name);
  const auto check = [&](const json& one) {
    if (!one.is_string()) settings.refuse(name, "must be a text, or a list of texts");
    return one.get<std::string>();
  };
  result.language_is_list = value.is_array();
  if (!value.is_array()) {
    result.language = {check(value)};
  } else {
    if (value.empty()) settings.refuse(name, "must be a text, or a list of texts");
    for (const json& one : value) result.language.push_back(check(one));
  }
  result.language_label = is_given(settings, name) ? settings.label_of(name) : name;
}

// The language and the task. Those of a folder that has no tokens of them are not read, as
// distil-medium.en's.
void read_language_and_task(const Settings& settings, const ModelSizes& sizes,
                            RecognitionSettings& result) {
  result.languages = token_map(settings, "lang_to_id", sizes.vocab);
  result.tasks = token_map(settings, "task_to_id", sizes.vocab);
  result.has_languages = settings.has("lang_to_id");
  result.has_tasks = settings.has("task_to_id");
  const bool is_english = settings.has("is_multilingual") && !settings.flag("is_multilingual");
  for (const auto& [name, ids] : {std::pair("language", "lang_to_id"), {"task", "task_to_id"}}) {
    if (!is_given(settings, name)) continue;
    if (is_english)
      settings.refuse(name, "must not be set for a model whose is_multilingual is false");
    if (!settings.has(ids))
      settings.refuse(name, std::string("must not be set for a model without ") + ids);
  }
  if (settings.has("language") && result.has_languages) read_language(settings, result);
  if (settings.has("task") && result.has_tasks) {
    result.task = settings.text("task");
    if (*result.task != "transcribe" && *result.task != "translate")
      settings.refuse("task", "must be transcribe or translate");
    if (!result.tasks.contains(*result.task))
      settings.refuse("task", "must be one of the model's task_to_id");
  }
  if (!result.language.empty() && !result.task && result.has_tasks &&
      !result.tasks.contains("transcribe"))
    settings.refuse("task_to_id", "must have transcribe");
}

std::vector<double> temperatures_in(const Settings& settings) {
  constexpr const char* name = "temperature";
  if (!is_given(settings, name)) return {0.0};
  const json& value = settings.given(name);
  std::vector<double> temperatures;
  for (const json& one : value.is_array() ? value : json::array({value})) {
    const bool is_real = one.is_number() && std::isfinite(one.get<double>());
    if (!is_real && !one.is_null()) settings.refuse(name, "must be a number, or a list of numbers");
    temperatures.push_back(is_real ? std::max(0.0, one.get<double>()) : 0.0);
  }
  if (temperatures.empty()) settings.refuse(name, "must have a number");
  return temperatures;
}

Attempt attempt_at(const Settings& settings, double temperature, int64_t vocab) {
  Settings own = settings;
  for (const char* const name : kUnread) own.erase(name);
  if (temperature > 0.0) {
    own.set("do_sample", true);
    own.set("temperature", temperature);
    own.set("num_beams", 1);
  }
  GenerateOptions search = generate_options(own, vocab);
  return {temperature, search.prefixes({}).return_log_probability(true)};
}

std::optional<TimestampRules> rules_in(const Settings& settings, int64_t vocab) {
  const auto none = settings.token_if("no_timestamps_token_id", vocab);
  if (!none) return std::nullopt;
  TimestampRules rules = {.no_timestamps_id = *none, .eos_id = 0};
  const auto ends = settings.tokens("eos_token_id", vocab);
  if (!ends.empty()) rules.eos_id = ends.front();
  if (rules.eos_id == 0) rules.eos_id = settings.token_if("bos_token_id", vocab).value_or(0);
  if (settings.has("max_initial_timestamp_index"))
    rules.max_initial_timestamp_index = settings.integer("max_initial_timestamp_index", 0, vocab);
  return rules;
}

void read_thresholds(const Settings& settings, RecognitionSettings& result) {
  result.compression_ratio = settings.real_if("compression_ratio_threshold");
  result.mean_log_probability = settings.real_if("logprob_threshold");
  result.no_speech = settings.real_if("no_speech_threshold");
  if (result.no_speech && !result.mean_log_probability)
    settings.refuse("no_speech_threshold", "needs logprob_threshold");
  if (result.no_speech && (!result.rules || result.rules->no_timestamps_id == 0))
    settings.refuse("no_speech_threshold", "needs no_timestamps_token_id");
}

void read_prompt(const Settings& settings, const ModelSizes& sizes, RecognitionSettings& result) {
  const bool condition = settings.flag("condition_on_prev_tokens", false);
  result.conditions = condition;
  result.conditions_first = condition && is_given(settings, "condition_on_prev_tokens");
  result.prev_sot = settings.token_if("prev_sot_token_id", sizes.vocab);
  if (is_given(settings, "prompt_ids")) {
    result.prompt = settings.tokens("prompt_ids", sizes.vocab);
    if (result.prompt.empty()) settings.refuse("prompt_ids", "must have a token");
  }
  if (!is_given(settings, "prompt_condition_type")) return;
  const std::string type = settings.text("prompt_condition_type");
  result.keeps_prompt = type == "all-segments";
  if (!result.keeps_prompt && type != "first-segment")
    settings.refuse("prompt_condition_type", "must be first-segment or all-segments");
  if (result.keeps_prompt && !condition)
    settings.refuse("prompt_condition_type", "needs condition_on_prev_tokens");
}

void read_timestamps(const Settings& settings, RecognitionSettings& result) {
  constexpr const char* name = "return_timestamps";
  const bool has = settings.flag(name, false);
  result.folder_has_timestamps = has;
  if (is_given(settings, name)) result.timestamps = has;
}

}  // namespace

json json_of(const Tokens& tokens) {
  json list = json::array();
  for (const int64_t token : tokens)
    list.push_back(token < 0 ? json(token) : json(static_cast<uint64_t>(token)));
  return list;
}

SettingOverrides overrides_of(const TranscribeOptions& options) {
  SettingOverrides overrides;
  const Settings given = Settings::parse("SpeechRecognizer", "settings", options.settings());
  for (const auto& [name, value] : given.object().items())
    overrides[name] = {value, "settings: " + name};
  const auto set = [&](const char* name, const auto& value, const char* option) {
    if (value) overrides[name] = {*value, option};
  };
  set("language", options.language(), "language");
  set("task", options.task(), "task");
  set("num_beams", options.beams(), "beams");
  set("compression_ratio_threshold", options.compression_ratio_threshold(),
      "compression_ratio_threshold");
  set("logprob_threshold", options.logprob_threshold(), "logprob_threshold");
  set("no_speech_threshold", options.no_speech_threshold(), "no_speech_threshold");
  set("condition_on_prev_tokens", options.condition_on_prev_tokens(), "condition_on_prev_tokens");
  set("prompt_condition_type", options.prompt_condition_type(), "prompt_condition_type");
  set("max_new_tokens", options.max_new_tokens(), "max_new_tokens");
  set("seed", options.seed(), "seed");
  if (options.timestamps())
    overrides["return_timestamps"] = {*options.timestamps() != Timestamps::None, "timestamps"};
  if (!options.temperatures().empty())
    overrides["temperature"] = {options.temperatures(), "temperatures"};
  if (!options.prompt_ids().empty())
    overrides["prompt_ids"] = {json_of(options.prompt_ids()), "prompt_ids"};
  return overrides;
}

RecognitionSettings recognition_settings(Settings settings, const Settings& config,
                                         const SettingOverrides& overrides, const ModelSizes& sizes,
                                         bool words) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const char* const name : kOfCalls) settings.erase(name);
  if (overrides.contains("is_multilingual") && !settings.has("is_multilingual"))
    settings.refuse("is_multilingual", "must be in the folder for another to replace it");
  const Settings own = replaced_settings(std::move(settings), overrides, kNames);
  own.token_if("decoder_start_token_id", sizes.vocab);  // throws for a list, one for each sound
  RecognitionSettings result = {.given = own};
  result.vocab = sizes.vocab;
  result.max_positions = sizes.max_target_positions;
  if (own.integer("num_return_sequences", 1, kMost) != 1)
    own.refuse("num_return_sequences", "must be 1, the only number that posenc has for sounds");
  for (const double temperature : temperatures_in(own))
    result.attempts.push_back(attempt_at(own, temperature, sizes.vocab));
  result.pad = own.token_if("pad_token_id", sizes.vocab).value_or(-1);
  result.rules = rules_in(own, sizes.vocab);
  result.first_timestamp = (result.rules ? result.rules->no_timestamps_id : sizes.vocab) + 1;
  if (own.has("max_new_tokens")) result.max_new_tokens = own.integer("max_new_tokens", 1, kMost);
  result.max_length = own.integer("max_length", 1, kMost);
  read_language_and_task(own, sizes, result);
  if (result.language.empty() && !result.task)
    result.forced = forced_tokens(own.has("forced_decoder_ids") ? own : config, sizes.vocab);
  read_timestamps(own, result);
  if (words) {
    result.alignment_heads = layer_heads(own, sizes);
    result.median_width = median_width(config);
  }
  read_thresholds(own, result);
  read_prompt(own, sizes, result);
  if (own.has("seed")) {
    if (!own.given("seed").is_number_unsigned()) own.refuse("seed", "must be an integer from 0 on");
    result.seed = own.given("seed").get<uint64_t>();
  }
  return result;
}

}  // namespace posenc::speech
