#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/rotary.h"

namespace posenc::functional {

/// Whether the kernel may write to `out`, the result of x, while it reads: it is x, or apart from
/// all that is read and from the other result.
bool may_write(const at::Tensor& out, const at::Tensor& x, const at::Tensor& other,
               const at::Tensor& other_out, const RotaryCosSin& table,
               const RotaryFuncOptions& how);

}  // namespace posenc::functional
