#include "speech/generation/prompts.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "base/text.h"

namespace posenc::speech {
namespace {

void append(Tokens& tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

// That which a prefix begins with that continues a text.
Tokens begin_of_text(const RecognitionSettings& settings) {
  if (!settings.prompt.empty() && settings.keeps_prompt) return settings.prompt;
  if (settings.prev_sot) return {*settings.prev_sot};
  const auto& suppressed = settings.attempts.front().search.suppress_tokens();
  if (suppressed.size() >= 2) return {suppressed[suppressed.size() - 2]};
  return {};
}

int64_t most_of_text(const RecognitionSettings& settings) { return settings.max_positions / 2 - 1; }

}  // namespace

int64_t language_token(const std::string& language, const TokenMap& ids, const std::string& label) {
  const std::string given = io::lower_case(language);
  if (const auto found = ids.find(given); found != ids.end()) return found->second;
  const auto& known = known_languages();
  auto row = std::ranges::find(known, given, &Language::name);
  if (row == known.end()) row = std::ranges::find(known, given, &Language::code);
  TORCH_CHECK_VALUE(row != known.end(), "[SpeechRecognizer] ", label,
                    " must be a language's English name or code, such as german or de. Got ",
                    io::in_quotes(language));
  const auto found = ids.find("<|" + std::string(row->code) + "|>");
  TORCH_CHECK_VALUE(found != ids.end(), "[SpeechRecognizer] ", label,
                    " must be one of the languages that the model has, its lang_to_id. Got ",
                    io::in_quotes(language));
  return found->second;
}

std::string language_of(int64_t token, const TokenMap& ids) {
  for (const auto& [text, id] : ids) {
    const bool is_marked = text.size() > 4 && text.starts_with("<|") && text.ends_with("|>");
    if (id == token) return is_marked ? text.substr(2, text.size() - 4) : text;
  }
  return "";
}

bool detects_language(const RecognitionSettings& settings) {
  const bool is_open = settings.forced.empty() || !settings.forced.front();
  return settings.language.empty() && settings.has_languages && is_open;
}

Tokens initial_tokens(const RecognitionSettings& settings, int64_t sound, int64_t sounds,
                      bool timestamps, std::optional<int64_t> detected) {
  std::vector<std::optional<int64_t>> tokens = {settings.attempts.front().search.bos_id()};
  tokens.insert(tokens.end(), settings.forced.begin(), settings.forced.end());
  if (!settings.language.empty()) {
    const auto count = static_cast<int64_t>(settings.language.size());
    TORCH_CHECK_VALUE(!settings.language_is_list || count == sounds, "[SpeechRecognizer] ",
                      settings.language_label, " must have a language for each of the ", sounds,
                      " sounds. Got ", count);
    const auto index = static_cast<std::size_t>(settings.language_is_list ? sound : 0);
    detected =
        language_token(settings.language[index], settings.languages, settings.language_label);
  }
  if (detected) {
    if (tokens.size() == 1) tokens.emplace_back();
    tokens[1] = detected;
  }
  if (settings.task)
    tokens.emplace_back(settings.tasks.at(*settings.task));
  else if (!settings.language.empty() && settings.has_tasks)
    tokens.emplace_back(settings.tasks.at("transcribe"));
  if (settings.rules) {
    const int64_t none = settings.rules->no_timestamps_id;
    if (!timestamps && tokens.back() != none) tokens.emplace_back(none);
    if (timestamps && tokens.back() == none) tokens.pop_back();
  }
  Tokens result;
  for (const auto& token : tokens)
    if (token) result.push_back(*token);
  return result;
}

std::vector<Tokens> first_texts(const RecognitionSettings& settings) {
  if (settings.prompt.empty() || settings.keeps_prompt) return {};
  const bool is_marked = settings.prompt.front() == settings.prev_sot;
  return {Tokens(settings.prompt.begin() + (is_marked ? 1 : 0), settings.prompt.end())};
}

Prefix prefix_of(const RecognitionSettings& settings, const Tokens& initial,
                 const std::vector<Tokens>& texts, bool conditions) {
  Prefix prefix;
  const bool continues = conditions && !texts.empty();
  if (continues) {
    Tokens text;
    for (const Tokens& own : texts) {
      const bool ends_twice = own.size() > 2 && own[own.size() - 2] >= settings.first_timestamp;
      text.insert(text.end(), own.begin(), own.end() - (ends_twice ? 1 : 0));
    }
    const auto most = static_cast<std::size_t>(std::max<int64_t>(0, most_of_text(settings)));
    if (text.size() > most) text.erase(text.begin(), text.end() - static_cast<int64_t>(most));
    prefix.tokens = begin_of_text(settings);
    append(prefix.tokens, text);
  } else {
    prefix.tokens = settings.prompt;
  }
  prefix.begin = static_cast<int64_t>(prefix.tokens.size());
  append(prefix.tokens, initial);
  if (continues && settings.pad >= 0) {
    const auto end = prefix.tokens.begin() + prefix.begin;
    prefix.begin -= std::count(prefix.tokens.begin(), end, settings.pad);
    prefix.hidden = static_cast<int64_t>(std::erase(prefix.tokens, settings.pad));
  }
  return prefix;
}

int64_t most_tokens(const RecognitionSettings& settings, const Prefix& prefix) {
  const int64_t columns = static_cast<int64_t>(prefix.tokens.size()) + prefix.hidden;
  if (settings.max_new_tokens) {
    TORCH_CHECK_VALUE(
        columns + *settings.max_new_tokens <= settings.max_positions,
        "[SpeechRecognizer] a window's prefix, its initial tokens, prompt and earlier "
        "text, and max_new_tokens must be at most max_target_positions, ",
        settings.max_positions, ". Got ", columns, " and ", *settings.max_new_tokens);
    return *settings.max_new_tokens;
  }
  const int64_t most = std::min(settings.max_length + std::min(most_of_text(settings), columns),
                                settings.max_positions);
  TORCH_CHECK_VALUE(most > columns,
                    "[SpeechRecognizer] a window's prefix, its initial tokens, prompt and earlier "
                    "text, must be shorter than ",
                    most, ", its longest text. Got ", columns);
  return most - columns;
}

}  // namespace posenc::speech
