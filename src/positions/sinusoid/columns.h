#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/positions/sinusoid/options.h"

namespace posenc {

/// Where the sines or the cosines of one axis are in a row: channels first, first + step, ... As a
/// strided view, so that nothing has to be concatenated or permuted afterwards.
struct Columns {
  int64_t first = 0, step = 1, count = 0;
  /// (..., width) -> (..., count)
  at::Tensor of(const at::Tensor& rows) const;
};
Columns columns(const SinusoidOptions& options, int64_t axis, bool cosine);

/// The channels of a row before cropping, without columns that stay zero.
int64_t row_width(const SinusoidOptions& options);

/// Uninitialised rows (N, channels before cropping); only columns that stay zero are set.
at::Tensor empty_rows(const SinusoidOptions& options, int64_t rows, at::ScalarType dtype);

/// The channels of such rows that are kept: sinusoid::OddDim::Truncate keeps the first dim.
at::Tensor cropped(const SinusoidOptions& options, const at::Tensor& rows);

/// Number of cells of the grid.
int64_t cells(const SinusoidOptions& options);

/// The axis of the grid that the block-th block of channels encodes.
int64_t grid_axis(const SinusoidOptions& options, int64_t block);

/// Copies the block's columns of `line` (extent, width), one row per cell of its axis, to all cells
/// of `out` (cells, width).
void spread(const SinusoidOptions& options, int64_t block, const at::Tensor& line, at::Tensor& out);

}  // namespace posenc
