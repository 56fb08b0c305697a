#pragma once

#include <c10/core/TensorImpl.h>

#include <string>
#include <unordered_map>

#include "posenc/core/state_dict_traits.h"

namespace torch::nn {
class Module;
}

namespace posenc::parallel {

/// What processes that train `module` together must have in common, a line for the version of
/// posenc and for each parameter and buffer: name, dtype, shape of the whole, strides,
/// requires_grad and kind of device. Values are not part of it.
std::string model_text(const torch::nn::Module& module,
                       const std::unordered_map<const at::TensorImpl*, ShardedName>& shards);

}  // namespace posenc::parallel
