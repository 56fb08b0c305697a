#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/api/include/torch/ordered_dict.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

namespace posenc {

/// Names and tensors in PyTorch's order: a module's parameters, its buffers, then its children.
using StateDict = torch::OrderedDict<std::string, at::Tensor>;

/// The module's parameters and buffers under the keys that Python's state_dict() would show.
/// The tensors share the module's memory.
StateDict state_dict(const torch::nn::Module& module);

/// What load_state_dict() may overlook.
struct LoadOptions {
  TORCH_ARG(std::string, prefix) = "";             ///< stripped from the file's names, dot included
  TORCH_ARG(bool, allow_missing) = false;
  TORCH_ARG(bool, allow_unexpected) = false;
};

/// What a load found; every list holds complete names.
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;     ///< in the module, not in the file
  std::vector<std::string> unexpected;  ///< in the file, not in the module
};

/// Copies `tensors` into `module`: all or nothing. Names, shapes and dtypes are checked first; one
/// c10::ValueError lists every missing, unexpected, misshapen and retyped tensor, and the module
/// is then as it was. Devices, requires_grad and the identity of the module's tensors are kept.
LoadReport load_state_dict(torch::nn::Module& module, const StateDict& tensors,
                           const LoadOptions& options = {});

}  // namespace posenc
