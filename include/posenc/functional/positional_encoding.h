#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>

namespace posenc::functional {

struct PositionalEncodingFuncOptions {
  /// The position of x's first row. Not together with position_ids.
  TORCH_ARG(int64_t, offset) = 0;
  /// Explicit positions: (L), or laid out as x is without its last axis.
  TORCH_ARG(at::Tensor, position_ids) = {};
  /// x is (B, L, D); false: (L, B, D).
  TORCH_ARG(bool, batch_first) = true;
};

/// x plus the rows of `table` for its positions: x + table[offset : offset + L].
///
/// x: (B, L, D), (L, B, D) or (L, D), real; table: (rows, D) or (1, rows, D)  ->  as x.
/// Throws c10::ValueError for another rank, width or shape of position_ids, a negative offset and a
/// sequence past the table's end; c10::TypeError for a dtype that cannot be meant;
/// c10::IndexError that names a position outside the table (on a GPU: the device's assertion).
at::Tensor positional_encoding(const at::Tensor& x, const at::Tensor& table,
                               const PositionalEncodingFuncOptions& options = {});

/// Throws c10::ValueError unless options.position_ids() fit an x (B, L, D), (L, B, D) or (L, D)
/// whose sizes without D are `sizes`.
void check_position_ids(at::IntArrayRef sizes, const PositionalEncodingFuncOptions& options);

/// x plus `rows`, one row a position: (L, D), or laid out as x is, (B, L, D) or (L, B, D).
/// Throws c10::ValueError for another shape, c10::TypeError for an x that is not real-valued.
at::Tensor add_position_rows(const at::Tensor& x, const at::Tensor& rows, bool batch_first = true);

/// The rows of `table` (rows, D) that `position_ids` (any shape) name: (..., D).
/// Errors as above.
at::Tensor position_embedding(const at::Tensor& position_ids, const at::Tensor& table);

}  // namespace posenc::functional
