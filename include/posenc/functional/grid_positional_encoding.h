#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::functional {

/// x + table, where both have a row for every cell of a grid: nothing is broadcast over rows.
///
/// x: (B, R, D) or (R, D), real; table: (R, D) or (1, R, D)  ->  as x.
/// Throws c10::ValueError for another rank, width or number of rows, c10::TypeError where x is not
/// real-valued.
at::Tensor grid_positional_encoding(const at::Tensor& x, const at::Tensor& table);

}  // namespace posenc::functional
