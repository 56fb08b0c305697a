#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// Options of positional_encoding().
struct PositionalEncodingFuncOptions {
  /// The position of x's first row. Cannot be combined with position_ids.
  TORCH_ARG(int64_t, offset) = 0;
  /// Explicit positions, (L) or with the shape of x without its last axis.
  TORCH_ARG(at::Tensor, position_ids) = {};
  /// Whether x is (B, L, D); false: (L, B, D).
  TORCH_ARG(bool, batch_first) = true;
};

/// x plus the rows of `table` at its positions: x + table[offset : offset + L].
///
/// x: (B, L, D), (L, B, D) or (L, D), floating-point; table: (rows, D) or (1, rows, D)  ->  as x.
///
/// Errors: c10::ValueError for a wrong rank, width or shape of position_ids, a negative offset and
/// a sequence that extends past the end of the table; c10::TypeError for a wrong dtype;
/// c10::IndexError, naming the position, for one outside the table (on a GPU a device assertion).
at::Tensor positional_encoding(const at::Tensor& x, const at::Tensor& table,
                               const PositionalEncodingFuncOptions& options = {});

/// x plus `rows`, which has one row per position: (L, D), or the shape of x, (B, L, D) or
/// (L, B, D).
///
/// Errors: c10::ValueError for a wrong shape; c10::TypeError if x is not floating-point.
at::Tensor add_position_rows(const at::Tensor& x, const at::Tensor& rows, bool batch_first = true);

/// table[position_ids]: the rows of `table` (rows, D) at `position_ids`, any shape  ->  (..., D).
///
/// Errors: c10::ValueError for a wrong rank of `table`; c10::TypeError and c10::IndexError for
/// position_ids, as in positional_encoding().
at::Tensor position_embedding(const at::Tensor& position_ids, const at::Tensor& table);

}  // namespace functional
}  // namespace posenc
