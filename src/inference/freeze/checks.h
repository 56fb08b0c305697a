#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::inference {

/// Throws where `x` is not float32 (B, L, width) on the CPU; errors begin with `name`.
void check_sequence(const char* name, const at::Tensor& x, int64_t width);

}  // namespace posenc::inference
