#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace posenc {

/// Position ids for every way in which models count. All results are int64 on the input's device
/// unless said otherwise, in positions; they go into the modules' `position_ids` and into
/// sinusoid().

/// offset, offset + 1, ...: (length). Throws c10::ValueError for a negative length.
at::Tensor positions_from_offset(int64_t length, int64_t offset = 0,
                                 const at::TensorOptions& options = {});

/// Each row from an offset of its own, as in incremental decoding of a batch:
/// offsets (B) -> (B, length), offsets[b] + 0 ... length - 1.
at::Tensor positions_from_offsets(const at::Tensor& offsets, int64_t length);

/// The rule of fairseq and its descendants in Hugging Face's transformers: tokens other than
/// `padding_idx` are numbered padding_idx + 1, ...; padding gets padding_idx.
/// ids: (..., L) -> (..., L), cumsum(ids != padding_idx) * (ids != padding_idx) + padding_idx.
/// `past`: how many tokens came before in each row (past_key_values_length).
at::Tensor positions_from_ids(const at::Tensor& ids, int64_t padding_idx, int64_t past = 0);

/// The plain rule: tokens are numbered from 0 in order, wherever the padding stands (left padding
/// too); padding gets `padding_position`. mask: (..., L) bool, true where a token stands.
/// cumsum(mask) - 1 where mask, as in Hugging Face's generate.
at::Tensor positions_from_mask(const at::Tensor& mask, int64_t padding_position = 0);

/// Several sequences packed in one row: lengths (N) -> (sum of lengths), each from `origin`.
at::Tensor positions_from_lengths(const at::Tensor& lengths, int64_t origin = 0);

/// length - 1, ..., 0, as Transformer-XL counts: (length).
at::Tensor reversed_positions(int64_t length, const at::TensorOptions& options = {});

/// length - 1, ..., 0, ..., -(length - 1): the distances that relative attention needs,
/// (2 length - 1).
at::Tensor relative_positions(int64_t length, const at::TensorOptions& options = {});

/// start + step * k, real-valued: (length), float64 unless `options` say otherwise.
at::Tensor real_positions(int64_t length, double start, double step,
                          const at::TensorOptions& options = {});

}  // namespace posenc
