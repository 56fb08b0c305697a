#pragma once

#include <ATen/core/Tensor.h>

namespace posenc {

/// The tensor on another device. From the CPU, the copy waits for nothing; one to the CPU could be
/// read before it is done, so it waits.
inline at::Tensor sent_to(const at::Tensor& tensor, at::Device device) {
  return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/tensor.is_cpu());
}

}  // namespace posenc
