#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// x + table, one row per cell of a grid in both; rows are never broadcast.
///
/// x: (B, R, D) or (R, D), floating-point; table: (R, D) or (1, R, D)  ->  as x.
///
/// Errors: c10::ValueError for a wrong rank, width or number of rows; c10::TypeError if x is not
/// floating-point.
at::Tensor grid_positional_encoding(const at::Tensor& x, const at::Tensor& table);

}  // namespace functional
}  // namespace posenc
