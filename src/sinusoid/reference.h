#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/sinusoid/options.h"

namespace posenc {

/// The recipe itself, as ATen operations in the reference's order: rows of `positions` (N), which
/// has the recipe's arithmetic type, into `rows` (N, D) of the same type.
void reference_rows(const SinusoidOptions& options, const at::Tensor& positions, at::Tensor& rows);

}  // namespace posenc
