#pragma once

#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <unordered_map>

namespace torch::nn {
class Module;
}

namespace posenc::parallel {

/// The axis of the rows of each buffer that a module or one of its children computes
/// (StateDictTraits::computed_tables). A table that grows may have more rows on one process than on
/// another.
using ComputedTensors = std::unordered_map<const at::TensorImpl*, int64_t>;
ComputedTensors computed_tensors(const torch::nn::Module& module);

}  // namespace posenc::parallel
