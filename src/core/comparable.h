#pragma once

#include <ATen/core/Tensor.h>

namespace posenc {

/// The numbers in a type that LibTorch compares and reduces: int64 for the unsigned types of more
/// than a byte, of which LibTorch has little more than the name.
inline at::Tensor comparable(const at::Tensor& numbers) {
  if (!numbers.defined() || !at::isBarebonesUnsignedType(numbers.scalar_type())) return numbers;
  return numbers.to(at::kLong);
}

}  // namespace posenc
