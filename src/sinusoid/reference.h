#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/sinusoid/options.h"

namespace posenc {

/// The recipe itself, as ATen operations in the reference's order.
///
/// `positions` (N), float32 or float64 -> (N, options.channels()) float32 or, with
/// sinusoid::Arithmetic::Float64, float64. `length` is L of angle_by_length. No zero rows, no Post.
at::Tensor reference_rows(const SinusoidOptions& options, const at::Tensor& positions,
                          int64_t length);

/// All cells of options.grid(), row-major, likewise.
at::Tensor reference_grid(const SinusoidOptions& options);

/// The table's Post, in place, on float32 (rows, D).
void finish(const SinusoidOptions& options, at::Tensor& table);

}  // namespace posenc
