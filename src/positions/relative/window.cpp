#include "posenc/positions/relative/window.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <utility>

#include "positions/relative/grid_rules.h"
#include "positions/relative/limits.h"

namespace posenc {
namespace relative {

void check_grid(const char* what, Grid grid, const char* module) {
  TORCH_CHECK_VALUE(grid.height > 0 && grid.width > 0 && grid.height <= kMostPatches &&
                        grid.width <= kMostPatches / grid.height,
                    "[", module, "] ", what, " must have positive sides, and at most ",
                    kMostPatches, " patches. Got ", grid.height, " x ", grid.width);
}

void check_windows(const char* module, Grid grid, int64_t window) {
  check_grid("a grid", grid, module);
  TORCH_CHECK_VALUE(window > 0, "[", module, "] the window must be positive. Got ", window);
  TORCH_CHECK_VALUE(grid.height % window == 0 && grid.width % window == 0, "[", module,
                    "] the sides of the grid must be multiples of ", window, ", the window. Got ",
                    grid.height, " x ", grid.width);
}

}  // namespace relative

namespace {

using relative::Grid;

// The row and the column of each patch; `stride` keeps every stride-th of both.
std::pair<at::Tensor, at::Tensor> patches_of(Grid grid, int64_t stride) {
  const at::Tensor rows = at::arange(0, grid.height, stride, at::kLong);
  const at::Tensor columns = at::arange(0, grid.width, stride, at::kLong);
  return {rows.repeat_interleave(columns.size(0)), columns.repeat({rows.size(0)})};
}

at::Tensor differences(const at::Tensor& queries, const at::Tensor& keys) {
  return queries.unsqueeze(1) - keys.unsqueeze(0);
}

}  // namespace

at::Tensor relative_window_index(Grid window, bool class_token) {
  relative::check_grid("a window", window);
  const int64_t across = 2 * window.width - 1, tokens = window.height * window.width;
  at::Tensor index = at::empty({tokens, tokens}, at::kLong);
  int64_t* to = index.data_ptr<int64_t>();
  for (int64_t query = 0; query < tokens; ++query) {
    const int64_t row = query / window.width, column = query % window.width;
    for (int64_t r = 0; r < window.height; ++r) {
      // That of the first key of the row; those of the others decrease.
      const int64_t first = (row - r + window.height - 1) * across + column + window.width - 1;
      for (int64_t c = 0; c < window.width; ++c) *to++ = first - c;
    }
  }
  if (!class_token) return index;
  const int64_t distances = (2 * window.height - 1) * (2 * window.width - 1);
  index = at::constant_pad_nd(index, {1, 0, 1, 0});
  index.select(0, 0).fill_(distances);
  index.select(1, 0).fill_(distances + 1);
  index.select(0, 0).select(0, 0).fill_(distances + 2);
  return index;
}

at::Tensor relative_distance_index(Grid grid, int64_t stride) {
  relative::check_grid("a grid", grid);
  TORCH_CHECK_VALUE(stride > 0, "[RelativePositionBias] stride must be positive. Got ", stride);
  const auto [key_rows, key_columns] = patches_of(grid, 1);
  const auto [rows, columns] = patches_of(grid, stride);
  return differences(rows, key_rows).abs() * grid.width + differences(columns, key_columns).abs();
}

at::Tensor shifted_window_mask(Grid grid, int64_t window, int64_t shift, at::ScalarType dtype) {
  TORCH_CHECK_VALUE(shift > 0 && shift < window, "[shifted_window_mask] shift must lie in (0, ",
                    window, "), the window. Got ", shift);
  relative::check_windows("shifted_window_mask", grid, window);
  // After the roll an axis has up to three regions that were not neighbours before.
  const auto regions = [&](int64_t size) {
    const at::Tensor position = at::arange(size, at::kLong);
    return (position >= size - window).to(at::kLong) + (position >= size - shift).to(at::kLong);
  };
  const at::Tensor region =
      (regions(grid.height).unsqueeze(1) * 3 + regions(grid.width).unsqueeze(0))
          .view({grid.height / window, window, grid.width / window, window})
          .transpose(1, 2)
          .reshape({-1, window * window});
  const at::Tensor apart = region.unsqueeze(1) != region.unsqueeze(2);
  constexpr double kFar = -100.0;
  return at::where(apart, at::Scalar(kFar), at::Scalar(0.0)).to(dtype);
}

at::Tensor relative_log_coordinates(Grid window, relative::LogCoordinates kind, Grid pretrained) {
  relative::check_grid("a window", window);
  const Grid by = pretrained.height > 0 ? pretrained : window;
  TORCH_CHECK_VALUE(kind != relative::LogCoordinates::TimmSwin || (by.height > 1 && by.width > 1),
                    "[RelativePositionBias] the window that coordinates are scaled by must be "
                    "larger than 1. Got ",
                    by.height, " x ", by.width);
  const at::Tensor rows = at::arange(-(window.height - 1), window.height, at::kLong);
  const at::Tensor columns = at::arange(-(window.width - 1), window.width, at::kLong);
  const auto scaled = [&](const at::Tensor& x, int64_t size) {
    const at::Tensor real = x.to(at::kFloat);
    if (kind == relative::LogCoordinates::TimmNatural) return real;
    // Swin v2 asks for the height alone.
    const bool unscaled = kind == relative::LogCoordinates::TimmSwinV2
                              ? size <= 1
                              : pretrained.height <= 0 && window.height <= 1;
    return (unscaled ? real : real / (size - 1)) * 8;
  };
  const int64_t across = columns.size(0), down = rows.size(0);
  const at::Tensor x = at::stack({scaled(rows, by.height).unsqueeze(1).expand({down, across}),
                                  scaled(columns, by.width).unsqueeze(0).expand({down, across})},
                                 -1);
  if (kind == relative::LogCoordinates::TimmNatural) return at::sign(x) * at::log(x.abs() + 1.0);
  return at::sign(x) * at::log2(x.abs() + 1.0) / std::log2(8.0);
}

}  // namespace posenc
