#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizers/regex/expression.h"
#include "tokenizers/unicode/utf8.h"

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
    const uint32_t* steps = steps_.data();
    const uint8_t* classes = classes_.data();
    std::size_t found = kNone, i = at;
    for (uint32_t state = begin_;;) {
      if (i == text.size()) {
        if ((steps[state] & kMatch) != 0) found = i;
        break;
      }
      const std::size_t here = i;
      const unsigned char lead = static_cast<unsigned char>(text[i]);
      uint32_t step;
      if (lead < 0x80) {
        ++i;
        step = steps[state + classes[lead]];
      } else {
        step = steps[state + class_of(next_character(text, i))];
      }
      if ((step & kMatch) != 0) found = here;
      state = step & ~kMatch;
      if (state == 0) break;
    }
    work += i - at;
    return found;
  }

  /// Whether a match can begin with the character at byte `at`, or be empty there.
  bool can_begin(std::string_view text, std::size_t at) const {
    std::size_t i = at;
    return steps_[begin_ + (at < text.size() ? class_of(next_character(text, i)) : 0)] != 0;
  }

 private:
  static constexpr uint32_t kMatch = 0x80000000;  // the match ends before this character

  uint8_t class_of(char32_t c) const {
    return classes_[static_cast<std::size_t>(pages_[c >> 8]) << 8 | (c & 0xFF)];
  }

  std::array<uint16_t, 0x1100> pages_;  // of each 256 characters, where their classes are
  std::vector<uint8_t>
      classes_;  // characters of a class are in the same sets; 0 is the end of the text
  // Of each state and class, where the steps of the next state begin: 0 is the end of the search.
  // The first page of classes is that of ASCII.
  std::vector<uint32_t> steps_;
  uint32_t begin_ = 0;

  friend class AutomatonBuilder;
};

}  // namespace posenc::text
