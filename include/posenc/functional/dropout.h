#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::functional {

/// at::dropout at the cost of a vector generator: x / (1 - p) where a random bit says so, else 0.
///
/// x: any shape  ->  the same shape and layout; x itself unless `training` and p > 0. From one seed
/// the bits of at::dropout, forward and backward, and its generator state afterwards, for any
/// number of threads; the mask is kept as one bit an element. Where that is not proven (see
/// embed()), at::dropout runs. Errors: those of at::dropout.
at::Tensor dropout(const at::Tensor& x, double p, bool training);

}  // namespace posenc::functional
