#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "posenc/sinusoid/options.h"

namespace posenc {

/// Any position's row from two small tables: p = high * 2^s + low, and the row of a sum of angles
/// is one complex product a frequency of the rows of its parts,
///
///     sin(a + b) = sin a cos b + cos a sin b,  cos(a + b) = cos a cos b - sin a sin b,
///
/// in float64, rounded once: exactly the entries of Precision::Exact. A million positions of 1024
/// channels take 20 MiB instead of 4 GB. There is no max_len: rows beyond the stored range, and
/// negative ones, are made on demand.
class FactoredTable {
 public:
  /// `range`: how many positions from 0 the stored rows serve alone, about 2 sqrt(range) rows.
  /// Throws c10::ValueError where Precision::Exact is not defined, for grids and points, and for a
  /// range outside [1, 2^31].
  explicit FactoredTable(const SinusoidOptions& options, int64_t range = int64_t{1} << 20,
                         at::ScalarType dtype = at::kFloat);

  /// The rows of `positions` (any shape; integers in (-2^31, 2^31)): (..., channels), on
  /// their device. Throws c10::TypeError for real positions and c10::IndexError for one outside.
  at::Tensor rows(const at::Tensor& positions) const;

  /// The rows of offset, offset + 1, ...: (length, channels), on the CPU.
  at::Tensor rows(int64_t offset, int64_t length) const;

  /// Bytes of the stored rows.
  int64_t bytes() const;

  const SinusoidOptions& options() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace posenc
