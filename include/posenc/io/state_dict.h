#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <string>

namespace torch::nn {
class Module;
}

namespace posenc {

/// Names and tensors in PyTorch's order: a module's parameters, its buffers, then its children.
using StateDict = torch::OrderedDict<std::string, at::Tensor>;

/// The module's parameters and buffers under the keys that Python's state_dict() would show; a
/// tensor that is registered twice appears under both names. WeightNotes are respected: tied names
/// are included, non-persistent tensors are not. The tensors share the module's memory.
StateDict state_dict(const torch::nn::Module& module);

}  // namespace posenc
