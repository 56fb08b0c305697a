#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/regex/expression.h"
#include "text/unicode/utf8.h"

namespace posenc::text {

/// A simple expression as a table: one step for each character, whatever the expression is. It
/// finds the match that a backtracking search finds first.
class Automaton {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// Nothing if the table would be too large.
  static std::optional<Automaton> make(const Expression& expression);

  /// The end of the match that begins at byte `at`, or kNone. Adds the bytes it looked at to
  /// `work`.
  std::size_t match(std::string_view text, std::size_t at, std::size_t& work) const {
    std::size_t found = kNone;
    const uint16_t* row = steps_.data() + begin_;
    std::size_t i = at;
    for (;;) {
      const std::size_t here = i;
      const uint16_t step = row[i < text.size() ? next_class(text, i) : 0];
      if ((step & kMatch) != 0) found = here;
      const uint16_t state = step & kState;
      if (state == 0 || here == text.size()) break;
      row = steps_.data() + std::size_t{state} * stride_;
    }
    work += i - at;
    return found;
  }

  /// Whether a match can begin with the character at byte `at`, or be empty there.
  bool can_begin(std::string_view text, std::size_t at) const {
    return steps_[begin_ + (at < text.size() ? next_class(text, at) : 0)] != 0;
  }

 private:
  static constexpr uint16_t kMatch = 0x8000;  // the match ends before this character
  static constexpr uint16_t kState = 0x7FFF;  // what follows it; 0 is the end of the search

  uint8_t next_class(std::string_view text, std::size_t& at) const {
    const unsigned char lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++at;
      return classes_[lead];  // the first page is the first of pages_
    }
    const char32_t c = next_character(text, at);
    return classes_[static_cast<std::size_t>(pages_[c >> 8]) << 8 | (c & 0xFF)];
  }

  std::array<uint16_t, 0x1100> pages_;  // of each 256 characters, where their classes are
  std::vector<uint8_t>
      classes_;  // characters of a class are in the same sets; 0 is the end of the text
  std::vector<uint16_t> steps_;  // of each state and class
  std::size_t stride_ = 0, begin_ = 0;

  friend class AutomatonBuilder;
};

}  // namespace posenc::text
