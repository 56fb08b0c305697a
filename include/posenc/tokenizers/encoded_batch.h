#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "posenc/export.h"

namespace posenc::text {
struct EncodedBatchParts;  // private
struct TokenizerAccess;
}  // namespace posenc::text

namespace posenc POSENC_EXPORT {
namespace tokenizers {

class Tokenizer;

/// Where EncodedBatch::write() writes, in the order of rows. What is null is left out.
struct BatchMemory {
  int64_t* ids = nullptr;             ///< (rows, columns)
  int64_t* attention_mask = nullptr;  ///< (rows, columns): 1 for tokens, 0 for padding
  /// (rows, columns): 1 for the second text, or what the template says; 0 if the model takes none.
  int64_t* type_ids = nullptr;
  /// (rows, columns): 1 for tokens that the template adds, and for padding.
  int64_t* special_tokens_mask = nullptr;
  /// (rows, columns, 2), only with TokenizerOptions::offsets: begin and end of each token in its
  /// text, in characters (code points). (0, 0) for special tokens and padding.
  int64_t* offsets = nullptr;
  int64_t* row_texts = nullptr;  ///< (rows): the index of the text that each row is of
};

/// Texts that have been encoded and padded: a batch whose size is known, to be written to memory of
/// the caller.
///
/// Immutable; any number of threads may use one. Copies share the rows.
class EncodedBatch {
 public:
  /// Number of rows: of texts, unless there is overflow.
  int64_t rows() const;
  /// Number of tokens of each row, padding included.
  int64_t columns() const;
  /// Whether there are offsets.
  bool has_offsets() const;
  /// Writes the rows. Throws ArgumentError for offsets that were not asked for.
  void write(const BatchMemory& into) const;
  /// How the tokenizer spells a token, or the padding token; with TokenizerOptions::tokens.
  /// Throws ArgumentError for an index outside, and if the tokens were not asked for.
  std::string token(int64_t row, int64_t column) const;

 private:
  friend class Tokenizer;
  friend struct text::TokenizerAccess;
  explicit EncodedBatch(std::shared_ptr<const text::EncodedBatchParts> parts)
      : parts_(std::move(parts)) {}

  std::shared_ptr<const text::EncodedBatchParts> parts_;
};

}  // namespace tokenizers
}  // namespace posenc
