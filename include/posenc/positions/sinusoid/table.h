#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/export.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// The table of nominal length `length`, by default the rows of positions 0 .. length - 1:
/// (options.row_count(length), options.channels()).
///
/// It is computed on the CPU in the recipe's order of operations, rounded once to the dtype of
/// `tensor_options` (float32 by default) and moved to its device. With any number of threads it is
/// bit-identical to the same PyTorch operations run on this machine with one thread.
///
/// Errors: c10::ValueError for a length below 1 and for options without a table.
at::Tensor sinusoid_table(const SinusoidOptions& options, int64_t length,
                          const at::TensorOptions& tensor_options = {});

/// The rows of `positions`, any shape, integer or floating-point  ->  (..., channels).
///
/// With sinusoid::PowerShape::Grid the powers are evaluated over all of the flattened positions.
///
/// Errors: c10::ValueError for positions that are not finite, for positions whose gradient would be
/// recorded, since the rows have none, and for options in which a row depends on the whole table;
/// c10::TypeError for boolean and complex positions.
at::Tensor sinusoid_rows(const SinusoidOptions& options, const at::Tensor& positions,
                         const at::TensorOptions& tensor_options = {});

/// Converts `table` (..., rows, channels) to another floating-point type without rounding twice: if
/// it is exactly the table that the recipe gives in its present type, it is recomputed in `dtype`;
/// any other table, such as one that was trained or computed on another CPU, is cast.
at::Tensor convert_table(const SinusoidOptions& options, const at::Tensor& table,
                         at::ScalarType dtype);

}  // namespace posenc
