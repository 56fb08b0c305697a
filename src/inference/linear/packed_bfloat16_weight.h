#pragma once

#include <ATen/core/Tensor.h>

#include "inference/linear/frozen_arrays.h"
#include "inference/linear/linear.h"
#include "kernels/inference.h"

namespace posenc::inference {

/// A weight (out, in) that is multiplied by rows in bfloat16, in the layout of kernels/bfloat16.h.
/// Copies share its memory.
class PackedBFloat16Weight {
 public:
  /// Rounds a float32 matrix to nearest, ties to even; numbers below 2^-126 become zero.
  explicit PackedBFloat16Weight(const at::Tensor& weight);
  /// One that was rounded before: takes what visit_arrays() gave.
  PackedBFloat16Weight(int64_t in, int64_t out, const TakeArray& take);
  /// Calls visit(name, array) for what it consists of.
  template <typename Visit>
  void visit_arrays(Visit&& visit) const {
    visit("elements", elements_);
  }

  /// out (rows, out()) = x (rows, in()) W^T + bias, which may be null, of rows as
  /// ConvertedRows::bfloat16() has them; threads share the work by columns.
  void run(const kernels::inference::BFloat16* x, int64_t rows, const float* bias, float* to,
           int64_t to_stride) const;
  /// The same for the columns of `part` alone, by this thread.
  void run(const kernels::inference::BFloat16* x, int64_t rows, const float* bias, float* to,
           int64_t to_stride, ColumnPart part) const;
  /// The float32 rows (N, in()) of N ids, which must be in range.
  at::Tensor rows(const at::Tensor& ids) const;

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  /// The size of its memory.
  int64_t bytes() const { return static_cast<int64_t>(elements_.nbytes()); }

 private:
  const kernels::inference::BFloat16* elements() const;

  int64_t in_, out_;
  at::Tensor elements_;
};

}  // namespace posenc::inference
