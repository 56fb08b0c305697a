#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/settings.h"

namespace posenc {

/// The weight (V) of each word of a WordWeights' `vocab`: that of the word or else of its
/// lower-case form in `word_weights`, or `unknown_word_weight`. Throws c10::ValueError for settings
/// that are none, and for a word of which only the lower-case form may have a weight and which has
/// other letters than those of ASCII.
at::Tensor word_weights_in(const Settings& config);

}  // namespace posenc
