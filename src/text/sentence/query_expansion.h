#pragma once

#include <cstdint>
#include <optional>

#include "posenc/models/encoder.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/tokenizers/tensors.h"

namespace posenc::text {

/// How queries are filled up, with an id.
struct Expansion {
  sentence::QueryExpansion rule;
  int64_t id;
  bool is_before;  ///< whether the tokens that are added come before the text

  /// Throws c10::ValueError, naming the public function `caller`, if there is no such token, or if
  /// one that is added might see no token of the text.
  Expansion(const char* caller, const sentence::QueryExpansion& rule, const Tokenizer& tokenizer,
            const EncoderOptions& encoder);

  /// Fills up queries that are padded on the right. Their mask is 1 for tokens that are added too,
  /// and `added`, bool (B, L), tells which these are.
  TokenBatch apply(const TokenBatch& batch, at::Tensor& added) const;
};

}  // namespace posenc::text
