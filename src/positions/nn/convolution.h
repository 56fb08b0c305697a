#pragma once

#include <torch/nn/modules/conv.h>

namespace posenc {

/// Makes a convolution, whose constructor draws its weights. Inside a SkipInit numbers are drawn
/// after it as if it had drawn none.
torch::nn::Conv1d make_convolution(const torch::nn::Conv1dOptions& options);
torch::nn::Conv2d make_convolution(const torch::nn::Conv2dOptions& options);

}  // namespace posenc
