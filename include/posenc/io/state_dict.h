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

/// The module's parameters and buffers under the keys that Python's state_dict() would show; what
/// is registered twice stands under both names. What WeightNotes says counts: tied names are there,
/// non-persistent ones are not. The tensors share the module's memory.
StateDict state_dict(const torch::nn::Module& module);

}  // namespace posenc
