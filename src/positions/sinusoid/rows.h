#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "posenc/positions/sinusoid/options.h"

namespace posenc {

/// The positions start, start + step, ... of `count` rows.
struct RowSequence {
  int64_t start = 0, step = 1, count = 0;
};

/// The positions of a table's rows, if they are integers in sequence.
std::optional<RowSequence> row_sequence(const SinusoidOptions& options, int64_t length);

/// The positions of the rows `index`, int64, of a table of this nominal length, in the type in
/// which the recipe starts from them: int64 or float32.
at::Tensor row_positions(const SinusoidOptions& options, int64_t length, const at::Tensor& index);
/// The positions of all its rows.
at::Tensor row_positions(const SinusoidOptions& options, int64_t length);

/// The nominal length of a table with this many rows, or 0 if there is none.
int64_t nominal_length(const SinusoidOptions& options, int64_t rows);

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
