#pragma once

#include <optional>
#include <string_view>

#include "tokenizers/regex/character_set.h"

namespace posenc::text {

/// The characters of `\p{name}` in Unicode 16.0: general categories, scripts, and what follows from
/// categories. Case, blanks, `-` and `_` in the name do not count. Nothing for a name that no table
/// here answers.
std::optional<CharacterSet> property_set(std::string_view name);

/// The characters of `[:name:]`. Nothing for a name that POSIX and Oniguruma do not know.
std::optional<CharacterSet> posix_set(std::string_view name);

/// `set` and the other form of each of its letters that has two, one in upper and one in lower
/// case.
CharacterSet with_both_cases(CharacterSet set);

/// The characters of `\d`, `\s`, `\w` and `\h`, as Oniguruma has them.
CharacterSet digit_set();
CharacterSet space_set();
CharacterSet word_set();
/// `\w` in brackets, and `[:word:]`: without superscripts and fractions below U+0100.
CharacterSet word_set_in_brackets();
CharacterSet hexadecimal_set();

}  // namespace posenc::text
