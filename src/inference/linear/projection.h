#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <utility>

#include "inference/linear/converted_rows.h"
#include "inference/linear/converted_weight.h"
#include "inference/linear/linear.h"
#include "posenc/inference/freeze_options.h"

namespace posenc::inference {

/// The numbers of rows for which a weight is multiplied by posenc's own kernels instead of
/// at::linear.
struct NativeFor {
  bool rows[kRowRegimes];
};
/// For products that have the same bits whatever FreezeOptions::gemm() is.
constexpr NativeFor kAlwaysNative = {{true, true, true}};

/// Row stride of buffers passed between kernels: an odd number of cache lines of 16 floats. With a
/// power of two, all rows would map to the same few cache sets.
constexpr int64_t odd_stride(int64_t width) { return 16 * ((width + 15) / 16 | 1); }

/// Makes that choice; each shape is timed once.
class GemmSelector {
 public:
  explicit GemmSelector(GemmBackend wish) : wish_(wish) {}
  NativeFor choose(const at::Tensor& weight);

 private:
  GemmBackend wish_;
  std::map<std::pair<int64_t, int64_t>, NativeFor> measured_;  // key: (out, in)
};

/// x W^T + b. The weight (out, in) is shared with its module, or converted.
class Projection {
 public:
  Projection() = default;
  /// `bias` may be undefined.
  Projection(const at::Tensor& weight, const at::Tensor& bias, NativeFor own);
  /// The same with a converted weight.
  Projection(const ConvertedWeight& weight, const at::Tensor& bias);

  /// out (rows, out()) = x (rows, in()) W^T + b; threads share the work by columns.
  void run(const float* x, int64_t rows, float* out, RowRegime regime) const {
    run(x, in(), rows, out, this->out(), regime);
  }
  /// The same for rows (rows, in()) in float32 as a tensor.
  at::Tensor rows(const at::Tensor& x) const;
  /// The same for rows with strides `x_stride` and `out_stride`.
  void run(const float* x, int64_t x_stride, int64_t rows, float* out, int64_t out_stride,
           RowRegime regime) const;
  /// The same for rows in row_format().
  void run(const ConvertedRows& x, int64_t rows, float* out, int64_t out_stride) const;

  /// The same for the columns of `part` alone, by this thread: out (rows, part's columns). `x` are
  /// the rows in float32, and `converted` in row_format(), unless that is Float32.
  void run(const float* x, int64_t x_stride, const ConvertedRows& converted, int64_t rows,
           float* out, int64_t out_stride, RowRegime regime, ColumnPart part) const;

  /// What the products read.
  RowFormat row_format() const {
    if (int8_) return {RowFormat::Int8, int8_->scale_block()};
    return packed_ ? RowFormat::BFloat16 : RowFormat::Float32;
  }
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }

 private:
  int64_t in_ = 0, out_ = 0;
  kernels::inference::LinearRequest request(const float* x, int64_t x_stride, int64_t rows,
                                            float* out, int64_t out_stride) const;
  const float* bias_or_null() const {
    return bias_.defined() ? bias_.const_data_ptr<float>() : nullptr;
  }

  at::Tensor weight_, bias_;
  std::optional<Int8Weight> int8_;  // instead of weight_
  std::optional<BFloat16Weight> bfloat16_;
  std::optional<PackedBFloat16Weight> packed_;
  NativeFor own_{};
};

}  // namespace posenc::inference
