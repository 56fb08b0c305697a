// Parts of the recogniser of speech that need no model.

#include <string>
#include <vector>

#include "differential/ops.h"
#include "posenc/tokenizers/tensors.h"
#include "speech/generation/prompts.h"
#include "speech/generation/segments.h"
#include "speech/words/speech_text.h"
#include "speech/words/token_times.h"

namespace posenc::differential {
namespace {

using speech::Tokens;

torch::Tensor ids(const Tokens& tokens) { return torch::tensor(tokens, torch::kLong); }

torch::Tensor bytes(const std::string& text) {
  return torch::tensor(std::vector<int64_t>(text.begin(), text.end()), torch::kLong);
}

StateDict split(const Json& options, const StateDict&) {
  const auto found = speech::split_window(options.at("tokens"), options.at("first_timestamp"),
                                          options.at("seek"), options.at("frames"));
  StateDict result;
  std::vector<double> rows;
  for (const auto& one : found.segments)
    rows.insert(rows.end(), {one.start_time, one.end_time, static_cast<double>(one.begin),
                             static_cast<double>(one.end)});
  result.insert("segments", torch::tensor(rows, torch::kDouble).view({-1, 4}));
  result.insert("frames", ids({found.frames}));
  return result;
}

StateDict ratio(const Json& options, const StateDict&) {
  StateDict result;
  result.insert("ratio",
                torch::tensor(speech::compression_ratio(options.at("tokens"), options.at("vocab")),
                              torch::kDouble));
  return result;
}

StateDict times(const Json& options, const StateDict& tensors) {
  const auto found = speech::token_times(tensors["attention"], options.at("columns"),
                                         options.at("count"), options.at("width"));
  StateDict result;
  result.insert("times", torch::tensor(found, torch::kFloat));
  return result;
}

// The text of tokens, and their words: the bytes of each, and its start and end.
StateDict words(const Json& options, const StateDict& tensors) {
  const auto tokenizer = Tokenizer::from_folder(options.at("folder"));
  const Tokens tokens = options.at("tokens");
  const torch::Tensor given = tensors["times"];
  const auto* const first = given.const_data_ptr<float>();
  StateDict result;
  result.insert("text", bytes(speech::text_of(tokenizer, tokens)));
  const auto found =
      speech::words_of(tokenizer, tokens, {first, first + given.numel()}, options.at("before"),
                       options.at("first_timestamp"), options.at("language"));
  std::string texts;
  std::vector<double> spans;
  for (const auto& word : found) {
    texts += word.text + '\0';
    spans.insert(spans.end(), {word.start, word.end});
  }
  result.insert("words", bytes(texts));
  result.insert("spans", torch::tensor(spans, torch::kDouble).view({-1, 2}));
  return result;
}

StateDict prompt(const Json& options, const StateDict&) {
  StateDict result;
  result.insert("ids", ids(speech::prompt_tokens(Tokenizer::from_folder(options.at("folder")),
                                                 options.at("text"))));
  return result;
}

// The initial tokens, and the prefix after earlier texts.
StateDict prefix(const Json& options, const StateDict&) {
  const auto file = [](const Json& object) {
    return Settings::parse("SpeechRecognizer", "settings", object.dump());
  };
  SettingOverrides overrides;
  for (const auto& [name, value] : options.at("overrides").items()) overrides[name] = {value, name};
  const auto settings = speech::recognition_settings(
      settings_of_generation(file(options.at("generation"))), file(options.at("config")), overrides,
      {options.at("vocab"), 80, options.at("max_target_positions"), 2, 2}, false);
  const bool detects = speech::detects_language(settings);
  const auto detected = detects ? std::optional<int64_t>(options.at("detected")) : std::nullopt;
  const Tokens initial = speech::initial_tokens(settings, 0, 1, options.at("timestamps"), detected);
  std::vector<Tokens> texts = speech::first_texts(settings);
  for (const Json& text : options.at("texts")) texts.push_back(text.get<Tokens>());
  const bool conditions = texts.empty() || options.at("texts").empty()
                              ? settings.conditions_first
                              : settings.conditions && options.at("is_low").get<bool>();
  const auto found = speech::prefix_of(settings, initial, texts, conditions);
  StateDict result;
  result.insert("detects", ids({detects ? 1 : 0}));
  result.insert("initial", ids(initial));
  result.insert("prefix", ids(found.tokens));
  result.insert("most", ids({speech::most_tokens(settings, found) +
                             static_cast<int64_t>(found.tokens.size()) + found.hidden}));
  return result;
}

}  // namespace

Ops speech_ops() {
  return {{"speech_split", split}, {"speech_ratio", ratio},   {"speech_times", times},
          {"speech_words", words}, {"speech_prompt", prompt}, {"speech_prefix", prefix}};
}

}  // namespace posenc::differential
