#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/positions/functional/resize_positions.h"

namespace posenc::functional {

/// The patches of an image.
struct PatchGrid {
  int64_t height, width;

  int64_t patches() const { return height * width; }
  bool operator==(const PatchGrid& other) const {
    return height == other.height && width == other.width;
  }
};

/// The square grid of a table with `patches` rows; smaller if that is no square number.
PatchGrid square_grid(int64_t patches);

/// Whether the rule takes the grid of the table from the model instead of assuming a square.
bool knows_old_grid(PositionResize rule);

/// Whether the rule leaves a table of `patches` rows, for the grid `from`, unchanged. square_image:
/// whether the image is as high as it is wide, in pixels.
bool keeps_positions(PositionResize rule, int64_t patches, PatchGrid from, PatchGrid to,
                     bool square_image);

/// Interpolates the rows after `prefix` of a table (1, prefix + N, D) even if the grids are equal.
/// Throws c10::ValueError, beginning with [`module`], unless `from` has N patches.
at::Tensor interpolate_positions(const char* module, const at::Tensor& table, PositionResize rule,
                                 int64_t prefix, PatchGrid from, PatchGrid to);

}  // namespace posenc::functional
