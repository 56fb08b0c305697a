#pragma once

#include <ATen/core/Tensor.h>

namespace posenc {

/// The tensor on another device. A copy from the CPU does not wait. A copy to the CPU does, since
/// it could otherwise be read before it is complete.
inline at::Tensor sent_to(const at::Tensor& tensor, at::Device device) {
  return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/tensor.is_cpu());
}

}  // namespace posenc
