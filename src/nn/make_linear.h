#pragma once

#include <torch/nn/modules/linear.h>

namespace posenc {

/// A torch::nn::Linear, which within a SkipInit draws no weights.
torch::nn::Linear make_linear(const torch::nn::LinearOptions& options);

}  // namespace posenc
