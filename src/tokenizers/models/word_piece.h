#pragma once

#include <memory>

#include "tokenizers/models/model.h"

namespace posenc::text {

/// Takes the longest token again and again; a word that has none at some place is unknown as a
/// whole.
std::unique_ptr<const Model> make_word_piece(const Definition& definition);

}  // namespace posenc::text
