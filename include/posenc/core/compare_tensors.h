#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <torch/arg.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// How far two results may be apart, element by element:
///
///     |actual - expected| <= atol + rtol |expected| + rtol_of_max max |expected|
///
/// The first two are those of torch.allclose. The third suits matrix products, whose rounding
/// errors follow the largest terms of a sum and not its result. With none of them the bits have to
/// be equal, so that 0.0 is not -0.0. A NaN equals any NaN, and an infinity only itself.
struct Tolerance {
  /// Relative to the element.
  TORCH_ARG(double, rtol) = 0.0;
  /// Absolute.
  TORCH_ARG(double, atol) = 0.0;
  /// Relative to the largest finite magnitude in the tensor.
  TORCH_ARG(double, rtol_of_max) = 0.0;
};

/// The difference between two tensors, and the element where it is worst: the one that is farthest
/// beyond the tolerance, or if all are within it, the one with the largest difference.
///
/// Of complex numbers, real and imaginary parts are compared as along another axis.
struct TensorComparison {
  bool ok = true;              ///< all elements are within the tolerance
  std::string mismatch;        ///< how shape or dtype differ; the rest is then unknown
  Tolerance tolerance;         ///< that was asked for
  int64_t numel = 0;           ///< number of elements
  int64_t outside = 0;         ///< number of elements that are beyond the tolerance
  std::vector<int64_t> worst;  ///< index of the worst element; empty if no bits differ
  c10::Scalar actual;          ///< the worst element
  c10::Scalar expected;        ///< what it should be
  double difference = 0.0;     ///< of the worst element, absolute; NaN if one of them is
  double ulps = 0.0;           ///< the same in representable numbers of the dtype
  double max_ulps = 0.0;       ///< the largest of all elements; NaN if one is
  double factor = 1.0;         ///< by which all of `expected` was multiplied; 1: no such factor
  int64_t last_dimension = 0;  ///< in which the factor may have a name, as sqrt(d_model)
  c10::ScalarType dtype = at::kFloat;  ///< of both

  /// Says all of this in up to three lines.
  std::string to_string() const;
};

/// Compares two tensors on any device. Sparse ones are compared as dense ones.
///
/// ```cpp
/// auto expected = torch::tensor({1.0f, 2.0f, 3.0f});
/// const auto tolerance = posenc::Tolerance().rtol(1e-2);
/// auto comparison = posenc::compare_tensors(expected * 1.001f, expected, tolerance);
/// TORCH_CHECK(comparison.ok, comparison);
/// ```
///
/// Errors: c10::ValueError for a tolerance that is negative or not finite.
TensorComparison compare_tensors(const at::Tensor& actual, const at::Tensor& expected,
                                 const Tolerance& tolerance = {});

/// Writes to_string().
std::ostream& operator<<(std::ostream& out, const TensorComparison& comparison);

}  // namespace posenc
