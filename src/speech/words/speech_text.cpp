#include "speech/words/speech_text.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "speech/words/split_words.h"

namespace posenc::speech {
namespace {

// Removes <|0.00|> and the like.
std::string without_timestamps(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto digits = [&](std::size_t from) {
      return std::min(text.find_first_not_of("0123456789", from), text.size());
    };
    if (text.compare(at, 2, "<|") == 0) {
      const std::size_t point = digits(at + 2), end = digits(std::min(point + 1, text.size()));
      const bool is_number = point > at + 2 && text.compare(point, 1, ".") == 0 && end > point + 1;
      if (is_number && text.compare(end, 2, "|>") == 0) {
        at = end + 2;
        continue;
      }
    }
    result.push_back(text[at++]);
  }
  return result;
}

bool uses_spaces(const std::string& language) {
  constexpr const char* kWithout[] = {"zh", "ja", "th", "lo", "my", "yue"};
  return std::ranges::find(kWithout, language) == std::end(kWithout);
}

double rounded(float seconds) { return std::round(static_cast<double>(seconds) * 100.0) / 100.0; }

}  // namespace

std::string text_of(const Tokenizer& tokenizer, const std::vector<int64_t>& tokens) {
  std::vector<int64_t> own = tokens;
  // What begins with a prompt has its text after it.
  if (!own.empty() && tokenizer.token_to_id("<|startofprev|>") == own.front()) {
    const auto start = tokenizer.token_to_id("<|startoftranscript|>");
    own.erase(own.begin(), start ? std::ranges::find(own, *start) : own.end());
  }
  return without_timestamps(tokenizer.decode(own));
}

std::vector<TranscriptWord> words_of(const Tokenizer& tokenizer, const std::vector<int64_t>& tokens,
                                     const std::vector<float>& times, float before,
                                     int64_t first_timestamp, const std::string& language) {
  const auto special = tokenizer.special_token_ids();
  const std::set<int64_t> specials(special.begin(), special.end());
  // Some files have special tokens that the folder's other files do not name.
  const auto is_left_out = [&](int64_t token) {
    return specials.contains(token) ||
           (tokenizer.decode({token}).empty() && !tokenizer.decode({token}, false).empty());
  };
  std::vector<int64_t> text;
  std::vector<std::pair<double, double>> spans;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= first_timestamp || is_left_out(tokens[i])) continue;
    text.push_back(tokens[i]);
    spans.emplace_back(rounded(i == 0 ? before : times[i - 1]), rounded(times[i]));
  }
  const auto decode = [&](const std::vector<int64_t>& ids) {
    return tokenizer.decode(ids, /*skip_special_tokens=*/false);
  };
  const int64_t end = tokenizer.special_token_id("eos_token").value_or(first_timestamp);
  std::vector<TranscriptWord> words;
  for (auto& word : split_words(text, decode, end, uses_spaces(language)))
    words.push_back(
        {std::move(word.text), spans[word.tokens.front()].first, spans[word.tokens.back()].second});
  return words;
}

std::vector<int64_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  const auto plain = TokenizerOptions().add_special_tokens(false);
  auto ids = tokenizer.encode_ids("<|startofprev|>", std::nullopt, plain);
  const auto special = tokenizer.special_token_ids();
  for (const int64_t id : tokenizer.encode_ids(" " + stripped(prompt), std::nullopt, plain)) {
    TORCH_CHECK_VALUE(special.empty() || id < special.front(),
                      "[SpeechRecognizer] prompt must have no special token. Got ",
                      io::in_quotes(tokenizer.id_to_token(id).value_or("")));
    ids.push_back(id);
  }
  return ids;
}

}  // namespace posenc::speech
