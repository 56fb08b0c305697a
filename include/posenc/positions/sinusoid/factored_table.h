#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "posenc/export.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// The row of any position from two small tables. The position is split, p = high * 2^s + low, and
/// the rows of its parts are multiplied as complex numbers, one product per frequency:
///
///     sin(a + b) = sin a cos b + cos a sin b,  cos(a + b) = cos a cos b - sin a sin b
///
/// This is done in float64 and rounded once, which gives exactly the entries of Precision::Exact.
/// The rows of a million positions with 1024 channels take 20 MiB instead of 4 GB. There is no
/// max_len: rows of positions beyond the stored range, and of negative ones, are computed on
/// demand.
///
/// ```cpp
/// posenc::FactoredTable table(posenc::preset("tensor2tensor", 32));
/// torch::Tensor rows = table.rows(torch::tensor({0, 70000, 5000000}));  // (3, 32)
/// ```
class FactoredTable {
 public:
  /// Stores about 2 sqrt(range) rows, from which those of positions 0 .. range - 1 are computed.
  ///
  /// Errors: c10::ValueError if Precision::Exact is not defined for `options`, for grids and
  /// points, and for a range outside [1, 2^31].
  explicit FactoredTable(const SinusoidOptions& options, int64_t range = int64_t{1} << 20,
                         at::ScalarType dtype = at::kFloat);

  /// The rows of `positions` (any shape, integers in (-2^31, 2^31))  ->  (..., channels), on the
  /// device of `positions`.
  ///
  /// Errors: c10::TypeError for positions that are not integers; c10::IndexError for one out of
  /// range.
  at::Tensor rows(const at::Tensor& positions) const;

  /// The rows of positions offset .. offset + length - 1: (length, channels), on the CPU.
  at::Tensor rows(int64_t offset, int64_t length) const;

  /// Size of the stored rows in bytes.
  int64_t bytes() const;

  /// The sinusoid.
  const SinusoidOptions& options() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace posenc
