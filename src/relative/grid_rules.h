#pragma once

#include "posenc/relative/window.h"

namespace posenc::relative {

/// Throws c10::ValueError unless both sides of the grid are positive; `what` it is: "a window".
void check_grid(const char* what, Grid grid);

}  // namespace posenc::relative
