#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoders/decoder.h"
#include "text/definition.h"
#include "text/encoded_rows.h"
#include "text/models/model.h"
#include "text/normalizers/normalizer.h"
#include "text/post_processors/post_processor.h"
#include "text/pre_tokenizers/pre_tokenizer.h"
#include "text/text_tokens.h"
#include "text/truncation.h"

namespace posenc::text {

/// How a Machine encodes.
struct EncodeRequest {
  bool add_special_tokens = true;
  std::optional<TruncationRule> truncation;
  bool overflow = false;  ///< also returns what is cut off
  Wanted wanted;
};

/// A tokenizer without padding and tensors: added tokens, normaliser, pre-tokenizer, model,
/// truncation, post-processor and decoder. Immutable; any number of threads may use one.
class Machine {
 public:
  /// With `split_special_tokens`, special tokens in a text are text. Throws TokenizerError.
  explicit Machine(Definition definition, bool split_special_tokens = false);
  ~Machine();

  /// Adds the rows of a text, or a pair, to `rows`; `index` is its index. Throws c10::ValueError
  /// for text that is not UTF-8 and for a request that cannot be met, and TokenizerError where a
  /// search takes too long and where `tokenizers` panics.
  void encode(std::string_view text, std::optional<std::string_view> pair,
              const EncodeRequest& request, std::size_t index, EncodedRows& rows) const;

  /// The text of ids; those without a token are left out.
  std::string decode(const std::vector<uint32_t>& ids, bool skip_special_tokens) const;

  std::optional<uint32_t> token_to_id(std::string_view token) const;
  std::optional<std::string_view> id_to_token(uint32_t id) const;
  /// The token of an id as decode() uses it: nothing for one that is skipped.
  std::optional<std::string_view> decoded_token(uint32_t id, bool skip_special_tokens) const;
  /// Null if tokens are joined by blanks.
  const Decoder* decoder() const { return decoder_.get(); }
  /// Number of tokens, added ones included.
  std::size_t vocab_size() const { return model_->size() + added_tokens_.new_tokens(); }

 private:
  struct Workspace;
  class Lease;

  TruncationRule checked(TruncationRule rule, bool is_pair, bool add_special_tokens) const;

  Definition definition_;  // the vocabulary's strings
  std::unique_ptr<const Model> model_;
  NormalizerPtr normalizer_;
  PreTokenizerPtr pre_tokenizer_;
  PostProcessor post_processor_;
  std::unique_ptr<const Decoder> decoder_;
  AddedTokens added_tokens_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>>
      free_;  // for the next calls; one for each thread at a time
};

}  // namespace posenc::text
