#include "speech/words/split_words.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace posenc::speech {
namespace {

constexpr std::string_view kAscii = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
constexpr std::string_view kJoinsNext = "\"'“¡¿([{-", kJoinsLast = "\"'.。,，!！?？:：”)]}、";
constexpr char32_t kReplacement = 0xFFFD;

// The characters of UTF-8, with the bytes at which each begins, and the end.
struct Characters {
  explicit Characters(const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto bits = static_cast<unsigned char>(text[i]);
      if ((bits & 0xC0) == 0x80 && !all.empty()) {
        all.back() = all.back() << 6 | (bits & 0x3F);
        continue;
      }
      const int lead = bits < 0x80 ? 0x7F : bits < 0xE0 ? 0x1F : bits < 0xF0 ? 0x0F : 0x07;
      all.push_back(bits & static_cast<unsigned>(lead));
      begins.push_back(i);
    }
    begins.push_back(text.size());
  }

  std::u32string all;
  std::vector<std::size_t> begins;
};

bool is_space(char32_t c) {
  constexpr std::u32string_view kOthers =
      U"\x85\xA0\u1680\u2028\u2029\u202F\u205F\u3000";  // of Python's str.isspace()
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || (c >= 0x2000 && c <= 0x200A) ||
         kOthers.find(c) != std::u32string_view::npos;
}

// Whether a text without the spaces around it is a part of `marks`, as the empty one is.
bool is_part_of(const std::string& text, std::string_view marks) {
  return marks.find(stripped(text)) != std::string_view::npos;
}

// The fewest tokens that are whole characters, or what the whole text has in their place.
std::vector<WordTokens> split_characters(
    const std::vector<int64_t>& tokens,
    const std::function<std::string(const std::vector<int64_t>&)>& decode) {
  const std::u32string whole = Characters(decode(tokens)).all;
  std::vector<WordTokens> pieces;
  std::vector<int64_t> open;
  std::size_t offset = 0, first = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    open.push_back(tokens[i]);
    std::string text = decode(open);
    const std::u32string own = Characters(text).all;
    const std::size_t broken = own.find(kReplacement), place = offset + broken;
    const bool is_whole =
        broken == std::u32string::npos || place >= whole.size() || whole[place] == kReplacement;
    if (!is_whole) continue;
    WordTokens& piece = pieces.emplace_back(WordTokens{std::move(text), {}});
    for (; first <= i; ++first) piece.tokens.push_back(first);
    open.clear();
    offset += own.size();
  }
  return pieces;
}

void join(WordTokens& word, const WordTokens& more) {
  word.text += more.text;
  word.tokens.insert(word.tokens.end(), more.tokens.begin(), more.tokens.end());
}

void join_punctuation(std::vector<WordTokens>& words) {
  for (std::size_t last = words.size(), i = words.size(); i-- > 0;) {
    const bool joins = last < words.size() && words[i].text.starts_with(' ') &&
                       is_part_of(words[i].text, kJoinsNext);
    if (joins) {
      join(words[i], words[last]);
      std::swap(words[i], words[last]);
      words[i] = {};
    } else {
      last = i;
    }
  }
  for (std::size_t first = 0, i = 1; i < words.size(); ++i) {
    if (!words[first].text.ends_with(' ') &&
        kJoinsLast.find(words[i].text) != std::string_view::npos) {
      join(words[first], words[i]);
      words[i] = {};
    } else {
      first = i;
    }
  }
  std::erase_if(words, [](const WordTokens& word) { return word.text.empty(); });
}

}  // namespace

std::string stripped(const std::string& text) {
  const Characters own(text);
  const auto is_not = [](char32_t c) { return !is_space(c); };
  const auto begin = std::ranges::find_if(own.all, is_not) - own.all.begin();
  auto end = static_cast<std::ptrdiff_t>(own.all.size());
  while (end > begin && is_space(own.all[static_cast<std::size_t>(end - 1)])) --end;
  const std::size_t from = own.begins[static_cast<std::size_t>(begin)];
  return text.substr(from, own.begins[static_cast<std::size_t>(end)] - from);
}

std::vector<WordTokens> split_words(
    const std::vector<int64_t>& tokens,
    const std::function<std::string(const std::vector<int64_t>&)>& decode, int64_t first_special,
    bool spaces) {
  std::vector<WordTokens> words = split_characters(tokens, decode);
  if (spaces) {
    std::vector<WordTokens> joined;
    for (WordTokens& piece : words) {
      const bool begins = joined.empty() || tokens[piece.tokens.front()] >= first_special ||
                          piece.text.starts_with(' ') || is_part_of(piece.text, kAscii);
      if (begins)
        joined.push_back(std::move(piece));
      else
        join(joined.back(), piece);
    }
    words = std::move(joined);
  }
  join_punctuation(words);
  return words;
}

}  // namespace posenc::speech
