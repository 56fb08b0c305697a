#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/text/tokenizer.h"
#include "text/encoded_rows.h"
#include "text/loaded_tokenizer.h"

namespace posenc::text {

/// The request that options mean. Throws c10::ValueError for options that contradict themselves or
/// the tokenizer.
EncodeRequest request_of(const LoadedTokenizer& tokenizer, const TokenizerOptions& options);

/// The rows of texts, or of pairs, found in parallel: in parts, which are in order. The error of
/// the first text that has one is thrown.
std::vector<EncodedRows> encode_rows(const LoadedTokenizer& tokenizer,
                                     const std::vector<std::string>& texts,
                                     const EncodeRequest& request);
std::vector<EncodedRows> encode_rows(const LoadedTokenizer& tokenizer,
                                     const std::vector<std::pair<std::string, std::string>>& pairs,
                                     const EncodeRequest& request);

/// The options that a file's own blocks mean; the default for a folder.
TokenizerOptions own_options(const LoadedTokenizer& tokenizer);

/// The tensors of rows, which come in parts. Unless it `needs_padding_token`, the id of padding is
/// 0 where the tokenizer has none.
TokenBatch token_batch(const LoadedTokenizer& tokenizer, const std::vector<EncodedRows>& parts,
                       const TokenizerOptions& options, bool needs_padding_token = true);

}  // namespace posenc::text
