#pragma once

#include <c10/core/TensorImpl.h>

#include <unordered_map>

#include "posenc/core/state_dict_traits.h"

namespace torch::nn {
class Module;
}

namespace posenc::parallel {

/// The tensors of which this process holds only some rows.
using ShardedTensors = std::unordered_map<const at::TensorImpl*, ShardedName>;

/// Those of `module` and its children (StateDictTraits::sharded_names). Throws c10::ValueError for
/// a name that is not registered.
ShardedTensors sharded_tensors(const torch::nn::Module& module);

/// The axis of the rows of each buffer that a module or one of its children computes
/// (StateDictTraits::computed_tables). A table that grows may have more rows on one process than on
/// another.
using ComputedTensors = std::unordered_map<const at::TensorImpl*, int64_t>;
ComputedTensors computed_tensors(const torch::nn::Module& module);

}  // namespace posenc::parallel
