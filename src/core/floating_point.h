#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace posenc {

/// The distance from 1 to the next larger number of a floating-point type, which bounds the
/// relative error of rounding to it; 1 for other types.
inline double epsilon_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble: return 0x1p-52;
    case at::kFloat: return 0x1p-23;
    case at::kHalf: return 0x1p-10;
    case at::kBFloat16: return 0x1p-7;
    case at::kFloat8_e4m3fn:
    case at::kFloat8_e4m3fnuz: return 0x1p-3;
    case at::kFloat8_e5m2:
    case at::kFloat8_e5m2fnuz: return 0x1p-2;
    default: return 1.0;
  }
}

/// The same for types of 16 bits; 0 for others.
inline double half_epsilon_of(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 ? epsilon_of(type) : 0.0;
}

/// The bits of each element, as integers of the same size.
at::Tensor bits_of(const at::Tensor& x);

/// Maps the bits of floating-point numbers to int64 in numerical order: neighbours are one apart,
/// and both zeros are 0. The difference of two ordinals is their distance in units of the last
/// place.
at::Tensor ordinals(const at::Tensor& bits);

}  // namespace posenc
