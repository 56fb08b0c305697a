#pragma once

#include <cstdint>
#include <optional>

#include "posenc/base/arg.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

namespace tokenizer {

/// What sequences are padded to.
enum class Padding {
  None,     ///< not at all: sequences of a batch must have one length
  Longest,  ///< the longest sequence of the batch
  Length,   ///< TokenizerOptions::pad_length
};

/// What is cut off a sequence that is longer than max_length.
enum class Truncation {
  None,          ///< nothing
  LongestFirst,  ///< of a pair the longer text, down to the length of the other; then both
  OnlyFirst,     ///< the first text
  OnlySecond,    ///< the second text
};

/// The end of a sequence that is padded or cut.
enum class Side { Left, Right };

}  // namespace tokenizer

/// How a Tokenizer makes a batch.
struct TokenizerOptions {
  /// Adds the special tokens that the model expects, such as `[CLS]` and `[SEP]`.
  POSENC_ARG(bool, add_special_tokens) = true;
  /// What sequences are padded to.
  POSENC_ARG(tokenizer::Padding, padding) = tokenizer::Padding::Longest;
  /// Number of tokens for Padding::Length; max_length unless set.
  POSENC_ARG(std::optional<int64_t>, pad_length) = std::nullopt;
  /// Makes the padded length a multiple of this; positive.
  POSENC_ARG(int64_t, pad_to_multiple_of) = 1;
  /// The id that padding has; that of the tokenizer's padding token unless set.
  POSENC_ARG(std::optional<int64_t>, pad_id) = std::nullopt;
  /// The end at which padding is added; the folder's unless set.
  POSENC_ARG(std::optional<tokenizer::Side>, padding_side) = std::nullopt;
  /// What is cut off.
  POSENC_ARG(tokenizer::Truncation, truncation) = tokenizer::Truncation::None;
  /// Most tokens of a sequence, special tokens included, for truncation and Padding::Length; the
  /// folder's `model_max_length` unless set.
  POSENC_ARG(std::optional<int64_t>, max_length) = std::nullopt;
  /// The end that is cut; the folder's unless set.
  POSENC_ARG(std::optional<tokenizer::Side>, truncation_side) = std::nullopt;
  /// Returns what is cut off too, as further rows.
  POSENC_ARG(bool, overflow) = false;
  /// Tokens that each of these rows repeats of the row before it.
  POSENC_ARG(int64_t, stride) = 0;
  /// Encodes texts of the target language of a translation model, as `text_target` of transformers
  /// does. Of other models these are encoded as any text.
  POSENC_ARG(bool, target) = false;
  /// Returns offsets. Ids alone are faster.
  POSENC_ARG(bool, offsets) = false;
  /// Returns how tokens are spelled, for EncodedBatch::token().
  POSENC_ARG(bool, tokens) = false;
  /// Most threads that encode a batch of more than 64 texts, whose rows do not depend on it;
  /// positive. Unless set, as many as there are processors, and in calls with tensors LibTorch's
  /// number of threads.
  POSENC_ARG(std::optional<int64_t>, threads) = std::nullopt;
};

}  // namespace posenc
