#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "posenc/core/state_dict_traits.h"
#include "posenc/io/state_dict.h"

namespace posenc::io {

/// The tensors of which this process holds only some rows, by full name.
using Shards = std::map<std::string, ShardedName>;

/// A module's state dict, with the declarations of its submodules (StateDictTraits), by full name.
struct ModuleState {
  StateDict tensors;
  Shards shards;  ///< under every name of a tied tensor
  std::vector<ComputedTable> tables;
  std::set<std::string> non_persistent;
};
ModuleState module_state(const torch::nn::Module& module);

/// The state of a module that may have further names for its tensors. Throws WeightsError for a
/// shard that does not fit its tensor.
ModuleState module_state(const torch::nn::Module& module, const std::vector<TiedName>& tied);

/// A tensor of a module that a load may write to.
struct Target {
  std::string name;
  at::Tensor tensor;
  std::size_t first;           ///< the first target with the same memory, usually itself
  std::vector<int64_t> sizes;  ///< of the whole tensor, of which `tensor` may be a shard
  int64_t first_row;           ///< of `tensor` in the whole one

  bool is_shard() const { return tensor.sizes() != at::IntArrayRef(sizes); }
};
std::vector<Target> targets_of(const ModuleState& state);

/// The sizes of the whole tensor of which `tensor` holds the rows of `shard`.
std::vector<int64_t> whole_sizes(const at::Tensor& tensor, const ShardedName& shard);

/// Whether one tensor is registered twice, or both are handles to the same memory.
bool same_memory(const at::Tensor& a, const at::Tensor& b);

/// Strided and with data: not sparse, quantised, nested or on the meta device.
bool is_dense_with_data(const at::Tensor& tensor);

}  // namespace posenc::io
