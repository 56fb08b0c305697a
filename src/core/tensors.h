#pragma once

#include <ATen/core/Tensor.h>

namespace posenc {

/// The numbers in a type that LibTorch compares and reduces: int64 for the unsigned types of more
/// than a byte, of which LibTorch has little more than the name.
inline at::Tensor comparable(const at::Tensor& numbers) {
  if (!numbers.defined() || !at::isBarebonesUnsignedType(numbers.scalar_type())) return numbers;
  return numbers.to(at::kLong);
}

/// The tensor on another device. A copy from the CPU does not wait. A copy to the CPU does, since
/// it could otherwise be read before it is complete.
inline at::Tensor sent_to(const at::Tensor& tensor, at::Device device) {
  return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/tensor.is_cpu());
}

}  // namespace posenc
