#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace posenc::train {

/// The lists that ATen's fused kernels take. The kernels walk memory linearly, so tensors with the
/// same index must have the same memory layout.
struct FusedLists {
  std::vector<std::size_t> entries;  ///< index of the original entry
  std::vector<at::Tensor> parameters, gradients;
  std::vector<std::vector<at::Tensor>> states;  ///< one list for each kind of state
};

/// A parameter for a fused kernel, with its gradient and states (undefined ones are created as
/// zeros). OptimizerBase has checked that all of them may be written.
struct FusedEntry {
  at::Tensor parameter, gradient;
  std::vector<at::Tensor*> states;
};

/// Calls `kernel` once for each device and dtype among the entries. All memory is allocated before
/// the first call, and a state is replaced only after its kernel has run, so running out of memory
/// leaves all values unchanged.
void run_fused(const std::vector<FusedEntry>& entries,
               const std::function<void(FusedLists&)>& kernel);

}  // namespace posenc::train
