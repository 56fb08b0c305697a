#pragma once

#include "posenc/positions/functional/resize_positions.h"

namespace posenc::functional {

enum class ResizeFilter { Nearest, Bilinear, Bicubic };

/// How the new grid is passed to the filter.
enum class ResizeSizing {
  Size,    // by its sizes
  Offset,  // by the factors (size + 0.1) / old
  Grow,    // by the factors size / old, where these are above 1
  Square,  // by the longer of its sizes; the result is cropped
};

/// When a table is left unchanged.
enum class ResizeKept {
  Never,
  SquareImage,  // the image is square, and has as many patches
  EqualGrid,    // the grids are equal
  EqualCount,   // there are as many patches, in whatever grid
};

/// The properties of a rule.
struct ResizeRule {
  PositionResize rule;
  const char* name;
  ResizeFilter filter = ResizeFilter::Bicubic;
  bool antialias = false;
  bool in_float32 = false;  // and then back to the table's dtype
  ResizeSizing sizing = ResizeSizing::Size;
  ResizeKept kept = ResizeKept::Never;
};

/// The row of `rule`.
const ResizeRule& resize_rule(PositionResize rule);

}  // namespace posenc::functional
