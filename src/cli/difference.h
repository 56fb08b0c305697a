#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace posenc::cli {

/// How far two results that mean the same lie apart.
struct Difference {
  bool equal = true;     ///< same shape, type and bits: -0.0 is not 0.0
  double max_abs = 0.0;  ///< NaN where only one of the two is NaN, or shapes or types differ
  double max_ulp = 0.0;  ///< representable numbers of the type in between
  std::string why;       ///< how shapes or types differ; "" where they do not
};

Difference difference(const at::Tensor& a, const at::Tensor& b);

/// The larger of each; equal only where both are.
Difference worst(const Difference& a, const Difference& b);

/// "0", "3.1e-05", "nan".
std::string short_number(double value);

}  // namespace posenc::cli
