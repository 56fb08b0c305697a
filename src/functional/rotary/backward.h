#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/rotary.h"

namespace posenc::functional {

/// Makes `out` the recorded result of rotating `x` by `table`.
void record(const at::Tensor& out, const at::Tensor& x, const RotaryCosSin& table,
            const RotaryOptions& options, const RotaryFuncOptions& how);

}  // namespace posenc::functional
