#pragma once

#include "posenc/text/tokenizer.h"
#include "text/loaded_tokenizer.h"

namespace posenc::text {

/// What the library knows of a Tokenizer and its users do not.
struct TokenizerAccess {
  static const LoadedTokenizer& loaded(const Tokenizer& tokenizer) { return *tokenizer.loaded_; }
};

}  // namespace posenc::text
