#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/post_processors/post_processor.h"
#include "tokenizers/python/added_tokens.h"
#include "tokenizers/python/python_class.h"

namespace posenc::text {

/// The special tokens that a class in Python puts around its texts.
struct PythonTemplate {
  /// A token, or one of the two texts.
  struct Item {
    std::optional<int> text;  // 0, or 1 for the second
    SpecialToken token;
  };
  using Items = std::vector<Item>;

  Items single, pair;
  /// The second part of a pair, from where a row of the first text alone would end, is of type 1.
  bool has_types = true;
  /// Special tokens are marked in the mask of special tokens.
  bool marks_added = true;
  /// A text that ends in the token which follows it does not get it once more.
  bool joins_last = false;
  /// Special tokens in a text are marked too, but for the unknown one.
  bool marks_specials = false;
};

/// What makes a tokenizer of a class in Python: the class itself, and what PythonBackend has.
struct PythonParts {
  std::unique_ptr<const PythonClass> python_class;
  std::unique_ptr<const PythonClass> target_class;  // for texts of the target language; may be null
  PythonAddedTokens added;
  PythonTemplate around;
  std::optional<PythonTemplate> around_target;
  bool needs_target_language = false;  // of which around_target knows
  std::vector<uint32_t> special_ids;   // that decode() may skip
};

}  // namespace posenc::text
