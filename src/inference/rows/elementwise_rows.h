#pragma once

#include "posenc/transformer/functional/elementwise.h"

namespace posenc::inference {

/// x = functional::elementwise(x) for each row of x (rows, D), contiguous, by itself: LibTorch
/// computes what is left of a part after its whole vectors by another formula, and where a part
/// ends would depend on how many threads share the rows.
inline void elementwise_by_row(const at::Tensor& x, Elementwise function) {
  for (int64_t row = 0; row < x.size(0); ++row) {
    const at::Tensor own = x.select(0, row);
    own.copy_(functional::elementwise(own, function));
  }
}

}  // namespace posenc::inference
