#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "posenc/core/state_dict_traits.h"
#include "posenc/io/state_dict.h"

namespace posenc::io {

/// A module's state dict, and what its parts say of it (StateDictTraits), under complete names.
struct ModuleState {
  StateDict tensors;
  std::vector<ComputedTable> tables;
  std::set<std::string> non_persistent;
};
ModuleState module_state(const torch::nn::Module& module);

/// A tensor of a module that a load may write.
struct Target {
  std::string name;
  at::Tensor tensor;
  std::size_t first;  ///< the first target that is the same memory; its own index for most
};
std::vector<Target> targets_of(const StateDict& tensors);

/// Registered twice, or a second handle on the same memory.
bool same_memory(const at::Tensor& a, const at::Tensor& b);

/// Strided and with data: not sparse, quantised, nested or on the meta device.
bool is_plain(const at::Tensor& tensor);

}  // namespace posenc::io
