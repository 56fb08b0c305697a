#include "models/save/saved_settings.h"

#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "models/seq2seq/generation_config.h"
#include "posenc/inference/generate_options.h"

namespace posenc {
namespace {

using nlohmann::json;

using NamedSettings = std::vector<std::pair<const char*, json>>;

template <typename Value>
json json_or_null(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}

// As files have them: one id as itself, none as null.
json id_or_ids(const std::vector<int64_t>& ids) {
  if (ids.empty()) return {};
  return ids.size() == 1 ? json(ids.front()) : json(ids);
}

json list_or_null(json list) { return list.empty() ? json() : list; }

json biases(const GenerateOptions& options) {
  json all = json::array();
  for (const auto& [ids, bias] : options.sequence_bias()) all.push_back({ids, bias});
  return list_or_null(std::move(all));
}

json decay(const GenerateOptions& options) {
  const auto& own = options.exponential_decay_length_penalty();
  return own ? json::array({own->start, own->factor}) : json();
}

json stop_word(EarlyStopping stopping) {
  if (stopping == EarlyStopping::Never) return "never";
  return stopping == EarlyStopping::WhenFull;
}

// The settings that these options are; null for those that are off.
NamedSettings generation_settings_of(const GenerateOptions& o) {
  NamedSettings all = {
      {"decoder_start_token_id", o.bos_id()},
      {"eos_token_id", id_or_ids(o.eos_ids())},
      {"max_new_tokens", json_or_null(o.max_new_tokens())},
      {"max_length", json_or_null(o.max_new_tokens() ? std::nullopt : o.max_length())},
      {"min_new_tokens", json_or_null(o.min_new_tokens())},
      {"min_length", o.min_length()},
      {"sequence_bias", biases(o)},
      {"encoder_repetition_penalty", o.encoder_repetition_penalty()},
      {"repetition_penalty", o.repetition_penalty()},
      {"no_repeat_ngram_size", o.no_repeat_ngram_size()},
      {"encoder_no_repeat_ngram_size", o.encoder_no_repeat_ngram_size()},
      {"bad_words_ids", list_or_null(o.bad_words_ids())},
      {"forced_bos_token_id", json_or_null(o.forced_bos_id())},
      {"forced_eos_token_id", id_or_ids(o.forced_eos_ids())},
      {"remove_invalid_values", o.remove_invalid_values()},
      {"exponential_decay_length_penalty", decay(o)},
      {"suppress_tokens", list_or_null(o.suppress_tokens())},
      {"begin_suppress_tokens", list_or_null(o.begin_suppress_tokens())},
      {"renormalize_logits", o.renormalize()},
      {"do_sample", o.do_sample()},
      {"num_beams", o.num_beams()},
      {"num_return_sequences", o.num_return_sequences()},
      {"length_penalty", o.length_penalty()},
      {"early_stopping", stop_word(o.early_stopping())},
  };
  if (!o.do_sample()) return all;
  const NamedSettings sampling = {
      {"temperature", o.temperature()},
      {"top_h", json_or_null(o.top_h())},
      {"top_k", o.top_k()},
      {"top_p", o.top_p()},
      {"min_p", json_or_null(o.min_p())},
      {"typical_p", o.typical_p()},
      {"epsilon_cutoff", o.epsilon_cutoff()},
      {"eta_cutoff", o.eta_cutoff()},
  };
  all.insert(all.end(), sampling.begin(), sampling.end());
  return all;
}

// The value as a file would have it: an id is unsigned then.
json as_read(const json& value) { return json::parse(value.dump()); }

// Sets those that mean something else in a file; returns the name of the first, or null.
const char* set_changed(Settings& settings, const GenerateOptions& options, int64_t vocab) {
  const char* changed = nullptr;
  const NamedSettings expected = generation_settings_of(options);
  const NamedSettings got = generation_settings_of(generate_options(settings, vocab));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, value] = expected[i];
    if (i < got.size() && got[i].second == value) continue;
    if (changed == nullptr) changed = name;
    settings.erase(name);
    if (!value.is_null()) settings.set(name, as_read(value));
  }
  return changed;
}

void check_has_settings(const GenerateOptions& options) {
  TORCH_CHECK_VALUE(options.length_penalty_kind() == LengthPenalty::Power,
                    "[save_pretrained] length_penalty_kind of the search must be "
                    "LengthPenalty::Power, the only one that transformers has. Got another");
  TORCH_CHECK_VALUE(
      options.coverage_penalty() == 0.0,
      "[save_pretrained] coverage_penalty of the search must be 0, since transformers "
      "has none. Got ",
      options.coverage_penalty());
}

// Whether the settings are some that generate() does not have, and that nobody has changed.
bool are_unsupported(const Settings& settings, const GenerateOptions& options, int64_t vocab) {
  const GenerateOptions read = generate_options_or_error(settings, vocab);
  if (read.unsupported().empty()) return false;
  TORCH_CHECK_VALUE(
      !options.unsupported().empty() &&
          generation_settings_of(options) == generation_settings_of(read),
      "[save_pretrained] the search of a folder whose settings generate() does not have must not "
      "be changed, unless Seq2SeqModel::origin.generation_config gives others. Got another for: ",
      read.unsupported());
  return true;
}

}  // namespace

std::string saved_generation(const std::string& text, const Settings& config,
                             const GenerateOptions& options, int64_t vocab,
                             std::optional<int64_t> pad) {
  check_has_settings(options);
  const bool is_new = text.empty();
  Settings settings = is_new ? generation_of_config(config)
                             : settings_of_generation(Settings::parse(
                                   config.caller(), "generation_config.json", text));
  if (is_new) {  // those alone of config.json that are of a search
    json own = json::object();
    for (const auto& [name, value] : settings.object().items())
      if (settings.is_known(name)) own[name] = value;
    settings = settings_of_generation(settings.with(std::move(own)));
    settings.set_default("decoder_start_token_id", as_read(options.bos_id()));
  }
  if (pad) settings.set("pad_token_id", as_read(*pad));
  if (are_unsupported(settings, options, vocab))
    return is_new || pad ? settings.object().dump(2) + "\n" : text;
  const bool has_changed = set_changed(settings, options, vocab) != nullptr || pad;
  if (!has_changed && !is_new) return text;
  // What is set may make the file's other settings count, such as top_k of sampling.
  set_changed(settings, options, vocab);
  const char* const differs = set_changed(settings, options, vocab);
  TORCH_CHECK_VALUE(differs == nullptr, "[save_pretrained] ", differs == nullptr ? "" : differs,
                    " of the search must be a value that transformers has. Got another");
  return settings.object().dump(2) + "\n";
}

}  // namespace posenc
