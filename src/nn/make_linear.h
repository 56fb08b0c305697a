#pragma once

#include <torch/nn/modules/linear.h>

namespace posenc {

/// Makes a torch::nn::Linear, with uninitialised weights inside a SkipInit.
torch::nn::Linear make_linear(const torch::nn::LinearOptions& options);

}  // namespace posenc
