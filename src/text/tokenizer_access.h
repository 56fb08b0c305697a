#pragma once

#include "posenc/text/tokenizer.h"
#include "text/loaded_tokenizer.h"

namespace posenc::text {

/// What the library asks of a Tokenizer beside what it offers to all.
struct TokenizerAccess {
  static const LoadedTokenizer& loaded(const Tokenizer& tokenizer) { return *tokenizer.loaded_; }
};

}  // namespace posenc::text
