#pragma once

#include <torch/types.h>

#include <cstdint>

namespace posenc::testing {

/// A device for tests, which every machine has: its memory is in the host's address space, but a
/// read or write by the host is a segmentation fault, also after it was freed. LibTorch's kernels
/// for the CPU do its work between. As on a GPU, a tensor of the CPU beside one of the device is an
/// error, unless it has no dimensions or holds indices. Randomness comes from a
/// generator of its own.
torch::Device test_device();

/// Counts how often the host has waited for the device, since the counter was made: it read a
/// value, copied a tensor to or from the device without non_blocking, or ran an operation whose
/// result's size depends on values, such as nonzero().
class DeviceWaits {
 public:
  DeviceWaits();
  int64_t count() const;

 private:
  int64_t before_;
};

}  // namespace posenc::testing
