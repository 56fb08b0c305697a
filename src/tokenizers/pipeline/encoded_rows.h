#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizers/pipeline/text_tokens.h"
#include "tokenizers/pipeline/truncation.h"
#include "tokenizers/post_processors/post_processor.h"
#include "tokenizers/unicode/aligned_text.h"

namespace posenc::text {

/// Rows of tokens as a tokenizer returns them, one after the other.
struct EncodedRows {
  std::vector<uint32_t> ids, type_ids;
  std::vector<uint8_t> special_tokens_mask;
  std::vector<Span> offsets;        ///< empty unless requested
  std::vector<std::string> tokens;  ///< empty unless requested
  /// Of each token the word in its text, and whether that is the first, 0, or the second, 1; -1 for
  /// tokens that a template adds. Empty unless requested.
  std::vector<int64_t> words;
  std::vector<int> sequences;
  std::vector<std::size_t> ends;   ///< of each row
  std::vector<std::size_t> texts;  ///< of each row, the index of its text
  std::vector<uint8_t> are_cut;    ///< of each row, whether it lacks tokens of its text

  void clear();
  std::size_t begin(std::size_t row) const { return row == 0 ? 0 : ends[row - 1]; }
  std::size_t length(std::size_t row) const { return ends[row] - begin(row); }
};

/// Adds the rows of a text or a pair, whose tokens are cut to `windows`: the main one, and with
/// `overflow` those of every other combination of windows, in the package's order.
void add_rows(const Plan& plan, const TextTokens* texts, const std::vector<Windows>& windows,
              bool overflow, const Requested& requested, std::size_t text, EncodedRows& rows);

}  // namespace posenc::text
