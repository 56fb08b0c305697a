#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "posenc/positions/rotary/rotary.h"

namespace posenc {

/// Whether each plane has separate frequencies for its channels: Planes::Axial and
/// AxialAlternating.
bool takes_turns(const RotaryOptions& options);

/// The entries of each plane, (..., n) or those of its own frequencies, as the row that
/// options.cos_layout() describes: (..., options.cos_width()). `rest`: the entry of angle 0.
at::Tensor combine_planes(const RotaryOptions& options, const std::vector<at::Tensor>& planes,
                          double rest);

}  // namespace posenc
