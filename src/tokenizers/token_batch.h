#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/tokenizers/encoded_batch.h"
#include "posenc/tokenizers/tokenizer_options.h"
#include "tokenizers/loaded_tokenizer.h"
#include "tokenizers/pipeline/encoded_rows.h"

namespace posenc::text {

/// The request that options mean, for ids alone. Throws ArgumentError for options that contradict
/// themselves or the tokenizer.
EncodeRequest request_of(const LoadedTokenizer& tokenizer, const TokenizerOptions& options);

/// What a batch is asked for beside TokenizerOptions. Unless it `needs_padding_token`, the id of
/// padding is 0 where the tokenizer has none.
struct BatchRequest {
  Requested requested;
  bool needs_padding_token = true;
};

/// The rows of a batch, and what they share.
struct EncodedBatchParts {
  std::vector<EncodedRows> parts;  // in the order of the texts
  std::vector<int64_t> ends;       // of each part, the row after its last
  Requested requested;
  int64_t width = 0;
  bool on_left = false;  // padding
  bool has_types = false;
  int64_t pad_id = 0, pad_type = 0;
  std::string pad_token;  // only where tokens are wanted
};

/// Encodes texts, on several threads, with their second ones unless `seconds` is empty. The error
/// of the first text that has one is thrown.
std::shared_ptr<const EncodedBatchParts> encode_batch(const LoadedTokenizer& tokenizer,
                                                      const std::vector<std::string_view>& texts,
                                                      const std::vector<std::string_view>& seconds,
                                                      const TokenizerOptions& options,
                                                      const BatchRequest& asked);

/// The options that a file's own blocks mean; the default for a folder.
TokenizerOptions own_options(const LoadedTokenizer& tokenizer);

}  // namespace posenc::text
