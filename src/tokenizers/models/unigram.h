#pragma once

#include <memory>

#include "tokenizers/models/model.h"

namespace posenc::text {

/// Splits a word into the pieces whose scores have the greatest sum (Viterbi, in float64 from left
/// to right).
std::unique_ptr<const Model> make_unigram(const Definition& definition);

}  // namespace posenc::text
