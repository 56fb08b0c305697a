#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

namespace posenc {

/// Appends the options of a module that decide what its forward computes in eval mode, as numbers.
using OptionReader = void (*)(const torch::nn::Module& module, std::vector<double>& values);

/// The reader of a module's class; null for a class without such options. Those of embeddings of
/// images are copied by freeze().
OptionReader option_reader(const torch::nn::Module& module);

/// The name of the first module below `got` whose options compute something else than those of the
/// module of that name below `expected`; empty if there is none.
std::string first_with_other_options(const torch::nn::Module& got,
                                     const torch::nn::Module& expected);

}  // namespace posenc
