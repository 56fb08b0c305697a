#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <cstdint>

namespace posenc::functional {

/// Float32 numbers without a regular pattern, used to find out how ATen rounds on this machine:
/// with a pattern, rounding errors could cancel in a sum.
inline at::Tensor scattered(at::IntArrayRef sizes, double step) {
  const at::Tensor out = at::empty(sizes, at::TensorOptions(at::kFloat));
  float* const to = out.data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i)
    to[i] = static_cast<float>(std::sin(step * static_cast<double>(i + 1)));
  return out;
}

}  // namespace posenc::functional
