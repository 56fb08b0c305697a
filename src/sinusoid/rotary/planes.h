#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/sinusoid/rotary.h"

namespace posenc {

/// The entries of each plane (planes, ..., n), or (..., n) without planes, as the row that
/// options.cos_layout() describes: (..., options.cos_width()).
at::Tensor combine_planes(const RotaryOptions& options, const at::Tensor& entries);

}  // namespace posenc
