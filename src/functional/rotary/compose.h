#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/sinusoid/rotary.h"

namespace posenc::functional {

/// The rotation as ATen operations: the definition. `cos` and `sin` (..., options.cos_width()) are
/// broadcast against x (..., Dh). `inverse` turns back.
at::Tensor composed_rotary(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                           const RotaryOptions& options, bool inverse);

}  // namespace posenc::functional
