#pragma once

#include <ATen/core/Tensor.h>

#include "inference/linear/frozen_arrays.h"
#include "inference/linear/int8_rows.h"
#include "inference/linear/linear.h"
#include "kernels/int8.h"

namespace posenc::inference {

/// A weight (out, in) in 8 bits, in the layout of kernels/int8.h. Copies share its memory.
class Int8Weight {
 public:
  /// Converts a float32 matrix: with a scale for each `scale_block` elements of a row, or for the
  /// row if that is 0.
  explicit Int8Weight(const at::Tensor& weight, int64_t scale_block = 0);
  /// One that was converted before: takes what visit_arrays() gave.
  Int8Weight(int64_t in, int64_t out, int64_t scale_block, const TakeArray& take);
  /// Calls visit(name, array) for what it consists of.
  template <typename Visit>
  void visit_arrays(Visit&& visit) const {
    visit("elements", bytes_);
    visit("units", units_);
    visit("sums", sums_);
  }

  /// out (rows, out()) = x (rows, in()) W^T + bias, which may be null, for rows with as many
  /// scales; threads share the work by columns.
  void run(const Int8Rows& x, int64_t rows, const float* bias, float* to, int64_t to_stride) const;
  /// The same for the columns of `part` alone, by this thread.
  void run(const Int8Rows& x, int64_t rows, const float* bias, float* to, int64_t to_stride,
           ColumnPart part) const;
  /// The float32 rows (N, in()) of N ids, which must be in range.
  at::Tensor rows(const at::Tensor& ids) const;

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  int64_t scale_block() const { return scale_block_; }
  /// The size of its memory.
  int64_t bytes() const;

 private:
  kernels::int8::LinearRequest request(const Int8Rows& x, int64_t rows, const float* bias,
                                       float* to, int64_t to_stride) const;

  int64_t in_, out_, scale_block_;
  at::Tensor bytes_, units_, sums_;
};

}  // namespace posenc::inference
