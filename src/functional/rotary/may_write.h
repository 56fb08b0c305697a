#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/rotary.h"

namespace posenc::functional {

/// Whether the kernel may write `out`, the result of x, while it reads its inputs: `out` is x
/// itself, or it overlaps neither the inputs nor the other result.
bool may_write(const at::Tensor& out, const at::Tensor& x, const at::Tensor& other,
               const at::Tensor& other_out, const RotaryCosSin& table,
               const RotaryFuncOptions& func_options);

}  // namespace posenc::functional
