#pragma once

#include <cstddef>
#include <string_view>

#include "tokenizers/regex/character_set.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

/// Thrown for what simple expressions lack; it does not leave parse_expression.
struct NotSimple {};

/// Reads the sets of characters in an expression.
class SetReader {
 protected:
  static constexpr int kMostDepth =
      50;  // of brackets and groups; beyond, Oniguruma has its own limits

  explicit SetReader(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  bool sees(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!sees(what)) return false;
    at_ += what.size();
    return true;
  }
  char32_t next() {
    if (done()) throw NotSimple{};
    return next_character(text_, at_);
  }

  /// What follows a backslash: a set or, as `is_class` says, one character.
  CharacterSet escape(bool& is_class, bool in_brackets);
  /// A set in brackets.
  CharacterSet bracket(int depth);
  /// What a letter is equal to where case is ignored. Only ASCII letters are known here.
  CharacterSet folded(CharacterSet set) const;

  std::string_view text_;
  std::size_t at_ = 0;
  bool ignore_case_ = false;

 private:
  char32_t hexadecimal(std::size_t least, std::size_t most);
  char32_t escaped_character(char32_t c);
  CharacterSet property(bool negative);
  CharacterSet posix();
  void bracket_member(CharacterSet& set);
  char32_t bracket_character(CharacterSet& set, bool& is_class);
};

}  // namespace posenc::text
