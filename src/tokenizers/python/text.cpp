#include "tokenizers/python/text.h"

#include <algorithm>
#include <optional>

#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text::python {
namespace {

struct CharacterRange {
  char32_t first, last;
};

template <std::size_t count>
bool is_in(char32_t c, const CharacterRange (&ranges)[count]) {
  return std::ranges::any_of(ranges,
                             [c](CharacterRange one) { return c >= one.first && c <= one.last; });
}

// Case_Ignorable: marks, modifiers, and what may lie within a word (Word_Break).
bool is_case_ignorable(char32_t c) {
  using enum unicode::Category;
  constexpr CharacterRange kWithinWords[] = {
      {0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
      {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
      {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
      {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};
  return (unicode::character(c).category & (Mn | Me | Cf | Lm | unicode::Sk)) != 0 ||
         is_in(c, kWithinWords);
}

// Cased, of those that are not ignorable: letters, and numbers and symbols that look like some.
bool is_cased(char32_t c) {
  using enum unicode::Category;
  constexpr CharacterRange kOthers[] = {{0xAA, 0xAA},      {0xBA, 0xBA},       {0x2160, 0x217F},
                                        {0x24B6, 0x24E9},  {0x1F130, 0x1F149}, {0x1F150, 0x1F169},
                                        {0x1F170, 0x1F189}};
  return (unicode::character(c).category & (Lu | Ll | Lt)) != 0 || is_in(c, kOthers);
}

// Whether the sigma from `begin` to `end` ends a word (Unicode's Final_Sigma).
bool is_final_sigma(std::string_view text, std::size_t begin, std::size_t end) {
  const auto skip = [&](auto&& next) {  // to the first that is not ignorable: whether it is cased
    while (const auto c = next()) {
      if (!is_case_ignorable(*c)) return is_cased(*c);
    }
    return false;
  };
  const bool is_after_letter = skip([&]() -> std::optional<char32_t> {
    if (begin == 0) return std::nullopt;
    begin = previous_character(text, begin);
    std::size_t at = begin;
    return next_character(text, at);
  });
  return is_after_letter && !skip([&]() -> std::optional<char32_t> {
           if (end == text.size()) return std::nullopt;
           return next_character(text, end);
         });
}

}  // namespace

// Beside White_Space four controls.
bool is_space(char32_t c) { return unicode::is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

std::string_view left_stripped(std::string_view text) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t at = begin;
    if (!is_space(next_character(text, at))) break;
    begin = at;
  }
  return text.substr(begin);
}

std::string_view right_stripped(std::string_view text) {
  while (!text.empty()) {
    const std::size_t last = previous_character(text, text.size());
    std::size_t at = last;
    if (!is_space(next_character(text, at))) break;
    text = text.substr(0, last);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    if (!is_space(next_character(text, at))) continue;
    if (here > begin) parts.push_back(text.substr(begin, here - begin));
    begin = at;
  }
  if (begin < text.size()) parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> found;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const char32_t c = next_character(text, at);
    const bool is_end = (c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                        c == 0x2028 || c == 0x2029;
    if (!is_end) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    found.push_back(text.substr(begin, here - begin));
    begin = at;
  }
  if (begin < text.size()) found.push_back(text.substr(begin));
  return found;
}

std::string lower(std::string_view text) {
  constexpr char32_t kSigma = 0x3A3, kLowerSigma = 0x3C3, kFinalSigma = 0x3C2;
  std::string lowered;
  lowered.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_character(text, at);
    if (c == kSigma) {
      append_character(lowered, is_final_sigma(text, begin, at) ? kFinalSigma : kLowerSigma);
      continue;
    }
    const unicode::Lower lower = unicode::lowercase(c);
    for (int i = 0; i < lower.count; ++i) append_character(lowered, lower.characters[i]);
  }
  return lowered;
}

}  // namespace posenc::text::python
