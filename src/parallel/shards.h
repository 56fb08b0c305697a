#pragma once

#include <c10/core/TensorImpl.h>

#include <unordered_map>

#include "posenc/core/state_dict_traits.h"

namespace torch::nn {
class Module;
}

namespace posenc::parallel {

/// The tensors of `module` and its children of which this process holds only some rows
/// (StateDictTraits::sharded_names). Throws c10::ValueError for a name that is not registered.
std::unordered_map<const at::TensorImpl*, ShardedName> sharded_tensors(
    const torch::nn::Module& module);

}  // namespace posenc::parallel
