#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <vector>

namespace posenc::testing {

/// The device's memory: pages that nobody may touch. A block that was freed is unmapped.
c10::Allocator* device_allocator();

/// Lets this process read and write the memory of tensors of the device while it is alive.
class HostAccess {
 public:
  explicit HostAccess(std::initializer_list<at::Tensor> tensors);
  ~HostAccess();
  HostAccess(const HostAccess&) = delete;
  HostAccess& operator=(const HostAccess&) = delete;

 private:
  std::vector<const void*> blocks_;
};

/// A tensor of the CPU over the memory of `tensor`, which must outlive it.
at::Tensor on_host(const at::Tensor& tensor);

}  // namespace posenc::testing
