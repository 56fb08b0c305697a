#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>
#include <torch/ordered_dict.h>

#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace posenc {

/// Names and tensors in PyTorch's order: a module's parameters, its buffers, then its children.
using StateDict = torch::OrderedDict<std::string, at::Tensor>;

/// The module's parameters and buffers under the keys that Python's state_dict() would show; what
/// is registered twice stands under both names. The tensors share the module's memory.
StateDict state_dict(const torch::nn::Module& module);

/// What load_state_dict() may overlook.
struct LoadOptions {
  /// Selects the names that begin with it and strips it, dot included (`model.encoder.`); names
  /// without it belong to other modules and are left alone.
  TORCH_ARG(std::string, prefix) = "";
  TORCH_ARG(bool, allow_missing) = false;
  TORCH_ARG(bool, allow_unexpected) = false;
};

/// What a load found. Names are complete: the module's in `loaded` and `missing`, the file's in
/// `unexpected`. A tensor that the module registers twice needs only one of its names in the file.
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;     ///< in the module, not in the file
  std::vector<std::string> unexpected;  ///< in the file, not in the module
};

/// Copies `tensors` into `module`: all or nothing. Names, shapes and dtypes are checked first; one
/// c10::ValueError lists every missing, unexpected, misshapen and retyped tensor, and tied names
/// that differ in the file, and the module is then as it was. Devices, requires_grad and the
/// identity of the module's tensors are kept.
LoadReport load_state_dict(torch::nn::Module& module, const StateDict& tensors,
                           const LoadOptions& options = {});

}  // namespace posenc
