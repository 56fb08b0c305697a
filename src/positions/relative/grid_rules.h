#pragma once

#include "posenc/positions/relative/window.h"

namespace posenc::relative {

/// Throws c10::ValueError, beginning with `[module]`, unless both sides of the grid are positive;
/// `what` it is: "a window".
void check_grid(const char* what, Grid grid, const char* module = "RelativePositionBias");

/// Throws c10::ValueError, beginning with `[module]`, unless the sides of the grid are positive
/// multiples of the window.
void check_windows(const char* module, Grid grid, int64_t window);

}  // namespace posenc::relative
