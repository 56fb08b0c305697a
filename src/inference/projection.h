#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <utility>

#include "inference/int8_weight.h"
#include "posenc/inference/freeze_options.h"

namespace posenc::inference {

/// The number of rows in the whole call. The kernels for few and for many rows sum in different
/// orders, so the choice must not depend on how rows are split between threads.
enum class RowRegime { One, Few, Many };
constexpr int kRowRegimes = 3;
RowRegime row_regime(int64_t rows);

/// The numbers of rows for which a weight is multiplied by posenc's own kernels instead of
/// at::linear.
struct NativeFor {
  bool rows[kRowRegimes];
};

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

/// x W^T + b. The weight (out, in) is shared with its module, or in 8 bits.
class Projection {
 public:
  Projection() = default;
  /// `bias` may be undefined.
  Projection(const at::Tensor& weight, const at::Tensor& bias, NativeFor own);
  /// The same with a weight in 8 bits.
  Projection(Int8Weight weight, const at::Tensor& bias);

  /// out (rows, out()) = x (rows, in()) W^T + b; threads share the work by columns.
  void run(const float* x, int64_t rows, float* out, RowRegime regime) const {
    run(x, in(), rows, out, this->out(), regime);
  }
  /// The same for rows with strides `x_stride` and `out_stride`.
  void run(const float* x, int64_t x_stride, int64_t rows, float* out, int64_t out_stride,
           RowRegime regime) const;

  int64_t in() const { return int8_ ? int8_->in() : weight_.size(1); }
  int64_t out() const { return int8_ ? int8_->out() : weight_.size(0); }

 private:
  at::Tensor weight_, bias_;
  std::optional<Int8Weight> int8_;  // instead of weight_
  NativeFor own_{};
};

}  // namespace posenc::inference
