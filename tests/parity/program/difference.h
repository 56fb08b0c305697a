#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace posenc::parity {

/// The difference between two results that should be equal.
struct Difference {
  bool equal = true;     ///< same shape, dtype and bits: -0.0 is not 0.0
  double max_abs = 0.0;  ///< NaN if only one of the two is NaN, or shapes or dtypes differ
  double max_ulp = 0.0;  ///< distance in representable numbers of the dtype
  std::string why;       ///< how shapes or dtypes differ, else ""
};

Difference difference(const at::Tensor& a, const at::Tensor& b);

/// The larger of each; equal only if both are.
Difference worst(const Difference& a, const Difference& b);

/// "0", "3.1e-05", "nan".
std::string short_number(double value);

}  // namespace posenc::parity
