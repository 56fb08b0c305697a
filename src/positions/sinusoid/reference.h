#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/positions/sinusoid/options.h"

namespace posenc {

/// The recipe itself, as ATen operations in the order of the reference implementation.
///
/// `positions` (N), float32 or float64 -> (N, options.channels()) float32 or, with
/// sinusoid::Arithmetic::Float64, float64. `length` is L of angle_by_length. No zero rows, no Post.
at::Tensor reference_rows(const SinusoidOptions& options, const at::Tensor& positions,
                          int64_t length);

/// The same for all cells of options.grid(), in row-major order.
at::Tensor reference_grid(const SinusoidOptions& options);

/// Applies the table's Post in place to float32 (rows, D).
void finish(const SinusoidOptions& options, at::Tensor& table);

}  // namespace posenc
