#pragma once

#include <memory>

#include "tokenizers/models/model.h"

namespace posenc::text {

/// Looks up the whole word.
std::unique_ptr<const Model> make_word_level(const Definition& definition);

}  // namespace posenc::text
