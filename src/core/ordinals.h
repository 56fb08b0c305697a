#pragma once

#include <ATen/core/Tensor.h>

namespace posenc {

/// The bits of each element, as integers of the same size.
at::Tensor bits_of(const at::Tensor& x);

/// Maps the bits of floating-point numbers to int64 in numerical order: neighbours are one apart,
/// and both zeros are 0. The difference of two ordinals is their distance in units of the last
/// place.
at::Tensor ordinals(const at::Tensor& bits);

}  // namespace posenc
