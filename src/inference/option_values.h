#pragma once

#include <torch/nn/module.h>

#include <vector>

namespace posenc::inference {

/// Appends the options of a module that decide what its forward computes in eval mode, as numbers.
using OptionReader = void (*)(const torch::nn::Module& module, std::vector<double>& values);

/// The reader of a module's class; null for a class without such options. Those of embeddings of
/// images are copied by freeze().
OptionReader option_reader(const torch::nn::Module& module);

}  // namespace posenc::inference
