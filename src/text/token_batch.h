#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/text/tokenizer.h"
#include "text/encoded_rows.h"
#include "text/loaded_tokenizer.h"

namespace posenc::text {

/// The request that options mean. Throws c10::ValueError for options that contradict themselves or
/// the tokenizer.
EncodeRequest request_of(const LoadedTokenizer& tokenizer, const TokenizerOptions& options);

/// The tensors of rows, which come in parts.
TokenBatch token_batch(const LoadedTokenizer& tokenizer, const std::vector<EncodedRows>& parts,
                       const TokenizerOptions& options);

}  // namespace posenc::text
