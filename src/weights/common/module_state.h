#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "posenc/core/state_dict_traits.h"
#include "posenc/weights/state_dict.h"

namespace posenc::io {

/// A module's state dict, with the declarations of its submodules (StateDictTraits), by full name.
struct ModuleState {
  StateDict tensors;
  std::vector<ComputedTable> tables;
  std::set<std::string> non_persistent;
};
ModuleState module_state(const torch::nn::Module& module);

/// The state of a module that may have further names for its tensors.
ModuleState module_state(const torch::nn::Module& module, const std::vector<TiedName>& tied);

/// A tensor of a module that a load may write to.
struct Target {
  std::string name;
  at::Tensor tensor;
  std::size_t first;  ///< the first target with the same memory, usually itself
};
std::vector<Target> targets_of(const ModuleState& state);

}  // namespace posenc::io
