// The settings of generate() in a folder.
//
// posenc-budget: all settings of one file, and what transformers takes for each

#include "models/seq2seq/generation_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "inference/generate/step_model.h"
#include "models/types/model_types.h"
#include "posenc/models/generation_config.h"
#include "weights/common/file.h"
#include "weights/common/json.h"

namespace posenc {
namespace {

constexpr const char* kLoad = "load_generation_config";
constexpr const char* kClass = "generation_config";
constexpr int64_t kMostColumns = int64_t{1} << 40;
constexpr uint64_t kMostBytes = 16'000'000;

// Searches of transformers that generate() does not have, with the values that select none.
const std::pair<const char*, nlohmann::json> kNothing[] = {
    {"assistant_ensemble_weight", nullptr},
    {"assistant_early_exit", nullptr},
    {"constraints", nullptr},
    {"dola_layers", nullptr},
    {"force_words_ids", nullptr},
    {"guidance_scale", 1.0},
    {"max_time", nullptr},
    {"prompt_lookup_num_tokens", nullptr},
    {"stop_strings", nullptr},
    {"token_healing", false},
    {"use_mtp", false},
    {"watermarking_config", nullptr},
};

std::string generation_path(const std::string& folder) {
  return (std::filesystem::path(folder) / "generation_config.json").string();
}

nlohmann::json without_nulls(const nlohmann::json& object) {
  nlohmann::json kept = nlohmann::json::object();
  for (const auto& [name, value] : object.items())
    if (!value.is_null()) kept[name] = value;
  return kept;
}

// What transformers takes of numbers, which JSON files of other tools have: any for a flag, and a
// whole real for an id or a length. Of others it takes a real only where that changes nothing.
constexpr const char* kFlags[] = {"do_sample", "low_memory"};
// Flags that only True itself sets.
constexpr const char* kStrictFlags[] = {"remove_invalid_values", "renormalize_logits"};
constexpr const char* kIntegers[] = {"bos_token_id",   "decoder_start_token_id",
                                     "eos_token_id",   "exponential_decay_length_penalty",
                                     "max_new_tokens", "max_length",
                                     "pad_token_id"};
constexpr std::pair<const char*, int64_t> kNeutral[] = {{"encoder_no_repeat_ngram_size", 0},
                                                        {"min_length", 0},
                                                        {"no_repeat_ngram_size", 0},
                                                        {"num_beam_groups", 1},
                                                        {"num_beams", 1},
                                                        {"num_return_sequences", 1},
                                                        {"top_k", 0}};
// Lists of tokens in which a negative number stands for none.
constexpr const char* kTokenLists[] = {"begin_suppress_tokens", "eos_token_id", "pad_token_id",
                                       "suppress_tokens"};

nlohmann::json as_integer(const nlohmann::json& value) {
  constexpr double kMost = 1e15;
  if (value.is_array()) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& one : value) list.push_back(as_integer(one));
    return list;
  }
  if (!value.is_number_float()) return value;
  const auto number = value.get<double>();
  if (std::trunc(number) != number || std::abs(number) > kMost) return value;
  if (number < 0) return static_cast<int64_t>(number);
  return static_cast<uint64_t>(number);  // as a token has to be
}

nlohmann::json without_negative(const nlohmann::json& value) {
  const auto is_negative = [](const nlohmann::json& one) { return one.is_number() && one < 0; };
  if (!value.is_array()) return is_negative(value) ? nlohmann::json() : value;
  nlohmann::json kept = nlohmann::json::array();
  for (const auto& one : value)
    if (!is_negative(one)) kept.push_back(one);
  return kept;
}

void read_as_python(Settings& settings) {
  const auto change = [&](const char* name, const auto& changed) {
    if (!settings.given(name).is_null()) settings.set(name, changed(settings.given(name)));
  };
  for (const char* const name : kFlags) {
    change(name, [](const nlohmann::json& value) {
      return value.is_number() ? nlohmann::json(value != 0) : value;
    });
  }
  for (const char* const name : kStrictFlags) {
    change(name, [](const nlohmann::json& value) {
      return value.is_number() ? nlohmann::json(false) : value;
    });
  }
  for (const char* const name : kIntegers) change(name, as_integer);
  for (const auto& [name, neutral] : kNeutral) {
    change(name, [number = neutral](const nlohmann::json& value) {
      return value.is_number_float() && value == number ? nlohmann::json(number) : value;
    });
  }
  for (const char* const name : kTokenLists) change(name, without_negative);
}

// What config.json does not set, transformers takes from the first of these parts that it has, of
// which FSMT's files have a `decoder`.
void add_settings_of_part(Settings& settings) {
  for (const char* const part : {"decoder", "generator", "text_config"}) {
    const nlohmann::json own = settings.given(part);
    if (!own.is_object() || own.empty()) continue;
    for (const auto& [name, value] : own.items())
      if (!value.is_null() && settings.given(name).is_null()) settings.set(name, value);
    return;
  }
}

// decoder_start_token_id, otherwise bos_token_id. The former may be a list, one per source.
std::vector<int64_t> begins_in(const Settings& settings, int64_t vocab) {
  if (auto begin = settings.tokens("decoder_start_token_id", vocab); !begin.empty()) return begin;
  if (const auto begin = settings.token_if("bos_token_id", vocab)) return {*begin};
  settings.refuse("decoder_start_token_id", "must be a token, or bos_token_id must be");
}

// Python compares 1 with True; only True itself stops at once.
EarlyStopping early_stopping_in(const Settings& settings) {
  const auto& value = settings.value("early_stopping");
  if (value == "never") return EarlyStopping::Never;
  if (value.is_number() && (value == 0 || value == 1)) return EarlyStopping::WhenUnlikely;
  if (!value.is_boolean()) settings.refuse("early_stopping", "must be true, false or \"never\"");
  return value.get<bool>() ? EarlyStopping::WhenFull : EarlyStopping::WhenUnlikely;
}

std::vector<int64_t> token_list(const Settings& settings, const char* name,
                                const nlohmann::json& list, int64_t vocab) {
  const std::string rule = "must have lists of tokens" +
                           (vocab == kMostColumns ? "" : " in [0, " + std::to_string(vocab) + ")");
  if (!list.is_array() || list.empty()) settings.refuse(name, rule);
  std::vector<int64_t> tokens;
  for (const auto& token : list) {
    if (!token.is_number_unsigned() || token.get<uint64_t>() >= static_cast<uint64_t>(vocab))
      settings.refuse(name, rule, token);
    tokens.push_back(token.get<int64_t>());
  }
  return tokens;
}

const nlohmann::json& full_list(const Settings& settings, const char* name) {
  static const nlohmann::json kEmpty = nlohmann::json::array();
  if (!settings.has(name)) return kEmpty;
  if (!settings.value(name).is_array() || settings.value(name).empty())
    settings.refuse(name, "must be a list that is not empty");
  return settings.value(name);
}

std::vector<std::vector<int64_t>> sequences_in(const Settings& settings, const char* name,
                                               int64_t vocab) {
  std::vector<std::vector<int64_t>> sequences;
  for (const auto& list : full_list(settings, name))
    sequences.push_back(token_list(settings, name, list, vocab));
  return sequences;
}

std::vector<SequenceBias> biases_in(const Settings& settings, int64_t vocab) {
  constexpr const char* name = "sequence_bias";
  std::vector<SequenceBias> biases;
  for (const auto& pair : full_list(settings, name)) {
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number())
      settings.refuse(name, "must have pairs of a list of tokens and a number", pair);
    biases.emplace_back(token_list(settings, name, pair[0], vocab), pair[1].get<double>());
  }
  return biases;
}

std::optional<LengthDecay> decay_in(const Settings& settings) {
  constexpr const char* name = "exponential_decay_length_penalty";
  if (!settings.has(name)) return std::nullopt;
  const auto& pair = settings.value(name);
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() || !pair[1].is_number())
    settings.refuse(name, "must be a list of an integer and a number");
  if (!settings.has("eos_token_id")) settings.refuse(name, "needs eos_token_id");
  return LengthDecay{pair[0].get<int64_t>(), pair[1].get<double>()};
}

// Ids of which some may be outside the vocabulary.
std::vector<int64_t> suppressed_in(const Settings& settings, const char* name) {
  return settings.integers_if(name).value_or(std::vector<int64_t>());
}

double positive_number(const Settings& settings, const char* name) {
  const double value = settings.real(name);
  if (!(value > 0.0)) settings.refuse(name, "must be above 0");
  return value;
}

// A cutoff that is not in (0, 1) acts as none.
double cutoff_in(const Settings& settings, const char* name) {
  const double value = settings.real(name);
  return value > 0.0 && value < 1.0 ? value : 0.0;
}

// Those that read a source, which a decoder-only model has not.
void refuse_settings_of_sources(const Settings& settings) {
  for (const char* const name : {"encoder_repetition_penalty", "encoder_no_repeat_ngram_size"})
    if (settings.has(name) && settings.real(name) > 0.0 && settings.real(name) != 1.0)
      settings.refuse(name, "must not be set for a model without an encoder");
}

int64_t size_in(const Settings& settings, const char* name) {
  return std::max<int64_t>(0, settings.integer(name, -kMostColumns, kMostColumns));
}

void check_has_only_known_searches(const Settings& settings, bool samples, int64_t beams) {
  for (const auto& [name, nothing] : kNothing)
    if (settings.has(name) && settings.value(name) != nothing)
      settings.refuse(name, "must be " + nothing.dump() + ", the only value that posenc has");
  if (beams > 1 && settings.integer("num_beam_groups", 1, 1, kMostRowsPerSource) > 1)
    settings.refuse("num_beam_groups", "must be 1, the only value that posenc has");
  if (beams > 1 && settings.flag("low_memory", false))
    settings.refuse("low_memory", "must be false with beams");
  if (beams > 1 && samples) settings.refuse("do_sample", "must be false with beams");
  const bool is_contrastive = beams == 1 && !samples && settings.real("penalty_alpha", 0.0) > 0.0 &&
                              settings.integer("top_k", 0, kMostColumns) > 1;
  if (is_contrastive) settings.refuse("penalty_alpha", "must be 0, the only value that posenc has");
}

void read_lengths(const Settings& settings, GenerateOptions& options) {
  options.max_new_tokens(std::nullopt);
  if (settings.has("max_new_tokens"))
    options.max_new_tokens(settings.integer("max_new_tokens", 1, kMostColumns));
  else if (!settings.given("max_length").is_null())
    options.max_length(settings.integer("max_length", 1, kMostColumns));
  if (settings.has("min_new_tokens")) options.min_new_tokens(size_in(settings, "min_new_tokens"));
  options.min_length(size_in(settings, "min_length"));
}

void read_processors(const Settings& settings, int64_t vocab, GenerateOptions& options) {
  options.sequence_bias(biases_in(settings, vocab))
      .encoder_repetition_penalty(positive_number(settings, "encoder_repetition_penalty"))
      .repetition_penalty(positive_number(settings, "repetition_penalty"))
      .no_repeat_ngram_size(size_in(settings, "no_repeat_ngram_size"))
      .encoder_no_repeat_ngram_size(size_in(settings, "encoder_no_repeat_ngram_size"))
      .bad_words_ids(sequences_in(settings, "bad_words_ids", vocab))
      .forced_bos_id(settings.token_if("forced_bos_token_id", vocab))
      .forced_eos_ids(settings.tokens("forced_eos_token_id", vocab))
      .remove_invalid_values(settings.flag("remove_invalid_values"))
      .exponential_decay_length_penalty(decay_in(settings))
      .suppress_tokens(suppressed_in(settings, "suppress_tokens"))
      .begin_suppress_tokens(suppressed_in(settings, "begin_suppress_tokens"))
      .renormalize(settings.flag("renormalize_logits", false));
}

void read_sampling(const Settings& settings, GenerateOptions& options) {
  const double top_p = settings.real("top_p"), typical_p = settings.real("typical_p");
  if (top_p < 0.0) settings.refuse("top_p", "must not be negative");
  if (typical_p <= 0.0) settings.refuse("typical_p", "must be above 0");
  options.do_sample(true)
      .temperature(positive_number(settings, "temperature"))
      .top_h(settings.real_if("top_h"))
      .top_k(settings.integer("top_k", 0, kMostColumns))
      .top_p(std::clamp(top_p, std::numeric_limits<double>::min(), 1.0))
      .min_p(settings.real_if("min_p"))
      .typical_p(std::min(typical_p, 1.0))
      .epsilon_cutoff(cutoff_in(settings, "epsilon_cutoff"))
      .eta_cutoff(cutoff_in(settings, "eta_cutoff"));
}

}  // namespace

std::string generation_text(const std::string& folder) {
  const std::string path = generation_path(folder);
  return io::may_exist(path) ? io::read_text(path, kMostBytes) : "";
}

Settings settings_of_generation(const Settings& generation) {
  Settings settings = generation.with(without_nulls(generation.object())).of(kClass);
  read_as_python(settings);
  return settings;
}

Settings generation_of_config(const Settings& config) {
  Settings settings = config;
  if (config.flag("force_bos_token_to_be_generated", false))
    settings.set("forced_bos_token_id", config.value("bos_token_id"));
  add_settings_of_part(settings);
  return settings_of_generation(settings);
}

Settings replaced_settings(Settings settings, const SettingOverrides& overrides,
                           std::span<const char* const> others) {
  for (const auto& [name, given] : overrides) {
    const bool is_known =
        settings.is_known(name) || std::find(others.begin(), others.end(), name) != others.end();
    TORCH_CHECK_VALUE(is_known, "[", settings.caller(), "] ", given.label,
                      " must be a setting of transformers' generate(). Got ",
                      io::shown(given.value));
    if (given.value.is_null())
      settings.erase(name);
    else
      settings.replace(name, given.value, given.label);
  }
  if (!overrides.empty()) read_as_python(settings);
  return settings;
}

Settings generation_settings(const std::string& folder, const Settings& config,
                             const SettingOverrides& overrides) {
  const std::string path = generation_path(folder);
  Settings settings = io::may_exist(path) ? settings_of_generation(Settings(config.caller(), path))
                                          : generation_of_config(config);
  return replaced_settings(std::move(settings), overrides);
}

Settings decoder_generation_settings(const std::string& folder, const SettingOverrides& overrides) {
  const auto path = (std::filesystem::path(folder) / "config.json").string();
  return generation_settings(folder, Settings(kLoad, path), overrides);
}

void rethrow_labelled(const Settings& settings, const c10::ValueError& error) {
  constexpr std::string_view kGenerate = "[generate] ";
  std::string what = error.what_without_backtrace();
  if (!what.starts_with(kGenerate)) throw;
  what.erase(0, kGenerate.size());
  const std::string name = what.substr(0, what.find(' '));
  const std::string label = settings.label_of(name);
  if (!label.empty()) what.replace(0, name.size(), label);
  TORCH_CHECK_VALUE(false, label.empty() ? settings.source() : std::string(kGenerate), what);
}

void check_search(const Settings& settings, const GenerateOptions& options,
                  const torch::Tensor& src, const TransformerOptions& model) {
  try {
    plan_search(options, src, model);
  } catch (const c10::ValueError& error) {
    rethrow_labelled(settings, error);
  }
}

GenerateOptions generate_options(const Settings& settings, int64_t vocab, Begin begin) {
  std::vector<int64_t> begins = {0};
  if (begin == Begin::StartToken)
    begins = begins_in(settings, vocab);
  else
    refuse_settings_of_sources(settings);
  const int64_t beams = settings.integer("num_beams", 1, kMostRowsPerSource);
  const bool samples = settings.flag("do_sample");
  check_has_only_known_searches(settings, samples, beams);
  GenerateOptions options(begins.front(), 0);
  options.eos_ids(settings.tokens("eos_token_id", vocab))
      .num_beams(beams)
      .num_return_sequences(
          settings.integer("num_return_sequences", 1, samples ? kMostRowsPerSource : beams))
      .length_penalty(settings.real("length_penalty"))
      .early_stopping(early_stopping_in(settings));
  if (begins.size() > 1)
    for (const int64_t begin : begins) options.prefixes().push_back({begin});
  read_lengths(settings, options);
  read_processors(settings, vocab, options);
  if (samples) read_sampling(settings, options);
  return options;
}

GenerateOptions generate_options_or_error(const Settings& settings, int64_t vocab, Begin begin) {
  try {
    return generate_options(settings, vocab, begin);
  } catch (const c10::ValueError& error) {
    return GenerateOptions(0, 0).unsupported(error.what_without_backtrace());
  }
}

int64_t fill_token(const Settings& settings, bool beams) {
  const auto pad = settings.token_if("pad_token_id", kMostColumns);
  const auto ends = settings.tokens("eos_token_id", kMostColumns);
  if (ends.empty()) return beams ? -1 : pad.value_or(-1);
  return pad && (*pad != 0 || !beams) ? *pad : ends.front();
}

GenerateOptions load_generation_config(const std::string& folder, const std::string& overrides) {
  const auto path = (std::filesystem::path(folder) / "config.json").string();
  const auto config = io::may_exist(path) || !io::may_exist(generation_path(folder))
                          ? Settings(kLoad, path)
                          : Settings::of_object(kLoad, nlohmann::json::object());
  SettingOverrides extra;
  if (!overrides.empty()) {
    const Settings given = Settings::parse(kLoad, "overrides", overrides);
    for (const auto& [name, value] : given.object().items())
      extra[name] = {value, "overrides: " + name};
  }
  const hf::ModelType* const type = hf::find_model_type(config.text("model_type", ""));
  const bool is_decoder = type != nullptr && type->decoder != nullptr;
  return generate_options(generation_settings(folder, config, extra), kMostColumns,
                          is_decoder ? Begin::Prompt : Begin::StartToken);
}

}  // namespace posenc
