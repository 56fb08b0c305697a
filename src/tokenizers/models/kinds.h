#pragma once

// The makers of models, one for each kind. All throw TokenizerError, as make_model() does.

#include <memory>

#include "tokenizers/models/model.h"

namespace posenc::text {

/// Begins with characters, and joins again and again the leftmost of the pairs that come first in
/// the list of merges.
std::unique_ptr<const Model> make_bpe(const Definition& definition);

/// Splits a word into the pieces whose scores have the greatest sum (Viterbi, in float64 from left
/// to right).
std::unique_ptr<const Model> make_unigram(const Definition& definition);

/// Looks up the whole word.
std::unique_ptr<const Model> make_word_level(const Definition& definition);

/// Takes the longest token again and again; a word that has none at some place is unknown as a
/// whole.
std::unique_ptr<const Model> make_word_piece(const Definition& definition);

}  // namespace posenc::text
