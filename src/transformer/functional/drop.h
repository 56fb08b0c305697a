#pragma once

#include <torch/nn/modules/dropout.h>

#include "posenc/positions/functional/dropout.h"

namespace posenc {

/// functional::dropout() with the module's options, except that it never runs in place.
inline torch::Tensor drop(const torch::nn::DropoutImpl& dropout, const torch::Tensor& x) {
  return functional::dropout(x, dropout.options.p(), dropout.is_training());
}

}  // namespace posenc
