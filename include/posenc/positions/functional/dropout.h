#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// at::dropout with a vectorised random generator: zeroes each element with probability p and
/// divides the others by 1 - p.
///
/// x: any shape  ->  the same shape and layout; x itself unless `training` is set and p > 0.
///
/// For the same seed, values, gradients and the generator's state afterwards are bit-identical to
/// those of at::dropout, with any number of threads. The mask kept for backward has one bit per
/// element. Inputs for which the vectorised generator is not known to be exact are passed to
/// at::dropout.
///
/// Errors: those of at::dropout.
at::Tensor dropout(const at::Tensor& x, double p, bool training);

}  // namespace functional
}  // namespace posenc
