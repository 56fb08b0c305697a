#pragma once

#include <string_view>
#include <vector>

#include "posenc/tokenizers/tokenizer.h"
#include "tokenizers/loaded_tokenizer.h"
#include "tokenizers/token_batch.h"

namespace posenc::text {

/// What posenc::text knows of a Tokenizer and its users do not. Of functions it calls those of the
/// public classes alone: a shared library of tokenizers exports no others.
struct TokenizerAccess {
  static const LoadedTokenizer& loaded(const tokenizers::Tokenizer& tokenizer) {
    return *tokenizer.loaded_;
  }
  static tokenizers::EncodedBatch encode(const tokenizers::Tokenizer& tokenizer,
                                         const std::vector<std::string_view>& texts,
                                         const std::vector<std::string_view>& seconds,
                                         const TokenizerOptions& options,
                                         const BatchRequest& request) {
    return tokenizer.encode_rows(texts, seconds, options, request);
  }
  static const EncodedBatchParts& parts(const tokenizers::EncodedBatch& batch) {
    return *batch.parts_;
  }
};

}  // namespace posenc::text
