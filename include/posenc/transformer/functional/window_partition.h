#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/export.h"
#include "posenc/positions/relative/window.h"

namespace posenc POSENC_EXPORT {
namespace functional POSENC_EXPORT {

/// Divides the tokens of a grid into windows, whose tokens become rows: those of a window and the
/// windows themselves row by row. With a shift, the grid is rolled by that many rows up and columns
/// to the left before. A grid that windows do not divide gets zeros below and on the right.
///
/// x: (B, H, W, C)  ->  (B, windows, height * width, C)
///
/// Errors: c10::ValueError for another rank, a window that is not positive and a negative shift.
///
/// Source: `window_partition` of Swin and SAM in transformers 5.23.
at::Tensor window_partition(const at::Tensor& x, relative::Grid window, int64_t shift = 0);

/// The inverse: the grid of such windows, without what was added to it.
///
/// windows: (B, windows, height * width, C)  ->  (B, H, W, C), for a grid of H x W tokens
///
/// Errors: the same; c10::ValueError for another number of windows or tokens.
at::Tensor window_unpartition(const at::Tensor& windows, relative::Grid grid, relative::Grid window,
                              int64_t shift = 0);

/// The grid with the rows and columns that window_partition() adds.
relative::Grid padded_grid(relative::Grid grid, relative::Grid window);

}  // namespace functional
}  // namespace posenc
