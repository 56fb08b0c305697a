#pragma once

#include <ATen/core/Tensor.h>

namespace posenc {

/// Draws a weight as torch.nn.init.trunc_normal_(weight, std=deviation) does, which cuts at -2 and
/// 2. Half types are drawn in float32.
void truncated_normal_(at::Tensor& weight, double deviation);

/// Sets a weight to zeros.
void zero_weights_(at::Tensor& weight);

}  // namespace posenc
