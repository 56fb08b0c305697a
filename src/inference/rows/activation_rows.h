#pragma once

#include "posenc/transformer/functional/activation.h"

namespace posenc::inference {

/// x = functional::activate(x) for each row of x (rows, D), contiguous, by itself: LibTorch
/// computes what is left of a part after its whole vectors by another formula, and where a part
/// ends would depend on how many threads share the rows.
inline void activate_by_row(const at::Tensor& x, Activation function) {
  for (int64_t row = 0; row < x.size(0); ++row) {
    const at::Tensor own = x.select(0, row);
    own.copy_(functional::activate(own, function));
  }
}

}  // namespace posenc::inference
