#pragma once

#include <memory>

#include "tokenizers/models/model.h"

namespace posenc::text {

/// Begins with characters, and joins again and again the leftmost of the pairs that come first in
/// the list of merges.
std::unique_ptr<const Model> make_bpe(const Definition& definition);

}  // namespace posenc::text
