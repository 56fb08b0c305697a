#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

// Position ids for the different ways in which models number their tokens, for use as
// `position_ids` of the modules and in sinusoid_rows(). Results are int64 on the input's device
// unless documented otherwise.

/// offset, offset + 1, ...: (length), int64 unless `options` specify another dtype.
///
/// Errors: c10::ValueError for a negative length.
at::Tensor positions_from_offset(int64_t length, int64_t offset = 0,
                                 const at::TensorOptions& options = {});

/// Consecutive positions with an offset for each row, for incremental decoding of a batch.
///
/// offsets: (B)  ->  (B, length): offsets[b] + 0 ... length - 1.
at::Tensor positions_from_offsets(const at::Tensor& offsets, int64_t length);

/// The positions of fairseq and the models derived from it in transformers, such as RoBERTa
/// (`create_position_ids_from_input_ids`): tokens other than `padding_idx` are numbered from
/// padding_idx + 1, and padding gets padding_idx.
///
/// ids: (..., L)  ->  (..., L): cumsum(ids != padding_idx) * (ids != padding_idx) + padding_idx.
/// `past` is the number of tokens before `ids` in each row (past_key_values_length).
///
/// Errors: c10::TypeError for ids that are not integers; c10::ValueError for a negative `past`.
at::Tensor positions_from_ids(const at::Tensor& ids, int64_t padding_idx, int64_t past = 0);

/// Tokens numbered from `first` on, whether the padding is on the right or on the left; padding
/// gets `padding_position`.
///
/// mask: (..., L), bool or integers, nonzero for a token, such as Hugging Face's `attention_mask`
/// ->  (..., L): cumsum(mask) - 1 + first where mask is nonzero. The defaults are the positions of
/// generate() in transformers; positions_from_mask(mask, first - 1, first) are those of
/// `OPTLearnedPositionalEmbedding`, whose padding has the position before the first one.
///
/// Errors: c10::TypeError for a mask of real numbers, since an additive one is 0 for a token.
at::Tensor positions_from_mask(const at::Tensor& mask, int64_t padding_position = 0,
                               int64_t first = 0);

/// Positions of several sequences packed into one row, each numbered from `origin`.
///
/// lengths: (N)  ->  (sum of lengths).
at::Tensor positions_from_lengths(const at::Tensor& lengths, int64_t origin = 0);

/// length - 1, ..., 0: (length). The numbering of Transformer-XL.
at::Tensor reversed_positions(int64_t length, const at::TensorOptions& options = {});

/// length - 1, ..., 0, ..., -(length - 1): (2 length - 1). The distances in relative attention.
at::Tensor relative_positions(int64_t length, const at::TensorOptions& options = {});

/// start + step * k for k = 0 ... length - 1: (length), float64 unless `options` specify another
/// dtype.
at::Tensor real_positions(int64_t length, double start, double step,
                          const at::TensorOptions& options = {});

}  // namespace posenc
