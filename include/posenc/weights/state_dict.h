#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <string>

#include "posenc/core/module_ref.h"

namespace posenc POSENC_EXPORT {

/// Names and tensors in PyTorch's order: a module's parameters, its buffers, then its children.
using StateDict = torch::OrderedDict<std::string, at::Tensor>;

/// Returns the module's parameters and buffers with the keys of Python's state_dict(). A tensor
/// that is registered twice appears under both names. Modules with StateDictTraits include tied
/// names and exclude non-persistent tensors. The tensors share the module's memory.
StateDict state_dict(const ConstModuleRef& module);

}  // namespace posenc
