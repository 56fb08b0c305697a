#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace posenc::train {

/// The lists that a fused kernel of ATen takes. It walks memory from end to end, so the tensors of
/// one place in the lists have to lie in memory alike.
struct DenseLists {
  std::vector<std::size_t> entries;  ///< where each came from
  std::vector<at::Tensor> parameters, gradients;
  std::vector<std::vector<at::Tensor>> states;  ///< a list for each kind of state
};

/// A parameter for a fused kernel with its gradient and states (undefined ones are made, as zeros).
/// All of them may be written: OptimizerBase has asked.
struct DenseEntry {
  at::Tensor parameter, gradient;
  std::vector<at::Tensor*> states;
};

/// Calls `kernel` once for each device and dtype among the entries. What has to be allocated for
/// that is allocated first, and a state is replaced after its kernel only: a call that runs out of
/// memory before has changed no number.
void run_fused(const std::vector<DenseEntry>& entries,
               const std::function<void(DenseLists&)>& kernel);

}  // namespace posenc::train
