#pragma once

#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <string>
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

/// What processes that train `module` together must have in common, a line for the version of
/// posenc and for each parameter and buffer: name, dtype, shape, strides,
/// requires_grad and kind of device. Values are not part of it, nor how many rows a computed table
/// has.
std::string model_text(const torch::nn::Module& module);
/// The lines of the buffers.
std::string buffers_text(const torch::nn::Module& module);

}  // namespace posenc::parallel
