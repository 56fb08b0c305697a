#pragma once

#include <ATen/core/Tensor.h>

#include "inference/linear/frozen_arrays.h"
#include "inference/linear/linear.h"

namespace posenc::inference {

/// A weight (out, in) in bfloat16. Copies share its memory.
class BFloat16Weight {
 public:
  /// Rounds a float32 matrix to nearest, ties to even.
  explicit BFloat16Weight(const at::Tensor& weight);
  /// One that was rounded before: takes what visit_arrays() gave.
  BFloat16Weight(int64_t in, int64_t out, const TakeArray& take)
      : weight_(take("elements", {out, in}, at::kBFloat16)) {}
  /// Calls visit(name, array) for what it consists of.
  template <typename Visit>
  void visit_arrays(Visit&& visit) const {
    visit("elements", weight_);
  }

  /// out (rows, out()) = x (rows, in()) W^T + bias, which may be null: the bits of float32's
  /// kernels on the rounded weight.
  void run(const float* x, int64_t x_stride, int64_t rows, const float* bias, float* to,
           int64_t to_stride, RowRegime regime) const;
  /// The same for the columns of `part` alone, by this thread.
  void run(const float* x, int64_t x_stride, int64_t rows, const float* bias, float* to,
           int64_t to_stride, RowRegime regime, ColumnPart part) const {
    run_linear(request(x, x_stride, rows, bias, to, to_stride), regime, part);
  }
  /// The float32 rows (N, in()) of N ids, which must be in range.
  at::Tensor rows(const at::Tensor& ids) const;

  int64_t in() const { return weight_.size(1); }
  int64_t out() const { return weight_.size(0); }
  /// The size of its memory.
  int64_t bytes() const { return static_cast<int64_t>(weight_.nbytes()); }

 private:
  kernels::inference::LinearRequestOf<kernels::inference::BFloat16> request(
      const float* x, int64_t x_stride, int64_t rows, const float* bias, float* to,
      int64_t to_stride) const;

  at::Tensor weight_;
};

}  // namespace posenc::inference
