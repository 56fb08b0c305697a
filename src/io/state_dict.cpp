#include "posenc/io/state_dict.h"

#include <torch/nn/module.h>

#include "io/fit.h"

namespace posenc {
namespace {

// Not Module::named_parameters(true): that one lists all parameters before all buffers.
void collect(const torch::nn::Module& module, const std::string& prefix, StateDict& result) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    result.insert(prefix + item.key(), item.value());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    result.insert(prefix + item.key(), item.value());
  }
  for (const auto& child : module.named_children()) {
    collect(*child.value(), prefix + child.key() + ".", result);
  }
}

}  // namespace

StateDict state_dict(const torch::nn::Module& module) {
  StateDict result;
  collect(module, "", result);
  return result;
}

LoadReport load_state_dict(torch::nn::Module& module, const StateDict& tensors,
                           const LoadOptions& options) {
  return io::load_fitting(module, tensors, options, "[load_state_dict] the state dict");
}

}  // namespace posenc
