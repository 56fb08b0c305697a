#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizers/regex/character_set.h"

namespace posenc::text {

/// A regular expression that needs no memory of what it has read but the place, and looks at most
/// one character ahead: sets of characters, sequences, alternatives, repetitions, and `(?=c)`,
/// `(?!c)`. All patterns of the well-known tokenizers are of this kind.
struct Expression {
  enum class Kind { Set, Sequence, Alternatives, Repeat, Ahead };
  static constexpr uint32_t kNoLimit = UINT32_MAX;

  Kind kind = Kind::Sequence;
  CharacterSet set;                  // Set, Ahead
  std::vector<Expression> children;  // Sequence, Alternatives; one of Repeat
  uint32_t least = 0, most = 0;      // Repeat
  bool lazy = false;                 // Repeat
  bool negative = false;             // Ahead: what follows is not in the set, or nothing follows

  bool can_be_empty() const;
  /// The characters that it can begin with.
  CharacterSet begins() const;
};

/// Reads an expression in Oniguruma's syntax. Nothing for one with anything else in it, which may
/// be a mistake, too.
std::optional<Expression> parse_expression(std::string_view text);

}  // namespace posenc::text
