#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "inference/freeze/option_values.h"

namespace posenc {

/// copy_of_options() that knows the classes of encoders and heads too.
std::shared_ptr<const OptionsCopy> copy_of_model_options(const torch::nn::Module& module);

/// The name of the first module below `got` whose options compute something else than those of the
/// module of that name below `expected`; empty if there is none.
std::string first_with_other_options(const torch::nn::Module& got,
                                     const torch::nn::Module& expected);

}  // namespace posenc
