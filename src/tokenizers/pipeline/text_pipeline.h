#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/pipeline/encoded_rows.h"
#include "tokenizers/pipeline/text_tokens.h"
#include "tokenizers/pipeline/truncation.h"

namespace posenc::text {

/// How a TextPipeline encodes.
struct EncodeRequest {
  bool add_special_tokens = true;
  std::optional<TruncationRule> truncation;
  bool overflow = false;  ///< also returns what is cut off
  bool target = false;    ///< the text is one of the target language
  Requested requested;
};

/// A tokenizer without padding and tensors. Immutable; any number of threads may use one.
class TextPipeline {
 public:
  virtual ~TextPipeline() = default;

  /// Adds the rows of a text, or a pair, to `rows`; `index` is its index. Throws ArgumentError
  /// for text that is not UTF-8 and for a request that cannot be met, and TokenizerError where a
  /// search takes too long and where the original fails.
  virtual void encode(std::string_view text, std::optional<std::string_view> pair,
                      const EncodeRequest& request, std::size_t index, EncodedRows& rows) const = 0;
  /// The text of ids.
  virtual std::string decode(const std::vector<uint32_t>& ids, bool skip_special_tokens) const = 0;
  /// The text of tokens: `convert_tokens_to_string()` of transformers.
  virtual std::string join(std::vector<std::string> tokens) const = 0;
  /// Whether tokens that continue a word are marked, such as `##ing`.
  virtual bool marks_subwords() const = 0;

  virtual std::optional<uint32_t> token_to_id(std::string_view token) const = 0;
  virtual std::optional<std::string> id_to_token(uint32_t id) const = 0;
  /// Whether the vocabulary that transformers lists, get_vocab(), has a token of this id.
  virtual bool lists(uint32_t id) const = 0;
  /// Number of tokens, added ones included.
  virtual std::size_t vocab_size() const = 0;
  /// Whether tokens have offsets in their text.
  virtual bool has_offsets() const = 0;

 protected:
  static void require_utf8(std::string_view text, std::optional<std::string_view> pair,
                           std::size_t index);
  /// The tokens that `rule` leaves for a text beside `added` special ones. Throws ArgumentError
  /// for none.
  static std::size_t room_for_text(const TruncationRule& rule, std::size_t added);
};

}  // namespace posenc::text
