#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <utility>

#include "posenc/inference/freeze.h"

namespace posenc::inference {

/// How many rows a whole call has: the kernels for a few and for many sum in different orders, so
/// that the choice must not depend on how rows are split between threads.
enum class Rows { One, Few, Many };
constexpr int kRowsCases = 3;
Rows rows_case(int64_t rows);

/// For which numbers of rows posenc's own kernels multiply by a weight; at::linear for the others.
struct OwnFor {
  bool rows[kRowsCases];
};

/// The stride of rows that kernels hand to each other: an odd number of cache lines of 16 floats.
/// Of a power of two all rows would have the same few places in a cache.
constexpr int64_t odd_stride(int64_t width) { return 16 * ((width + 15) / 16 | 1); }

/// Decides it: each shape is timed once.
class Multipliers {
 public:
  explicit Multipliers(GemmBackend wish) : wish_(wish) {}
  OwnFor choose(const at::Tensor& weight);

 private:
  GemmBackend wish_;
  std::map<std::pair<int64_t, int64_t>, OwnFor> measured_;  // by (out, in)
};

/// x W^T + b, of a weight (out, in) that lies where its module has it.
class Projection {
 public:
  Projection() = default;
  /// `bias` may be undefined.
  Projection(const at::Tensor& weight, const at::Tensor& bias, OwnFor own);

  /// out (rows, out()) = x (rows, in()) W^T + b; the columns are split between threads.
  void run(const float* x, int64_t rows, float* out, Rows of) const {
    run(x, in(), rows, out, this->out(), of);
  }
  /// The same for rows that are `x_stride` and `out_stride` apart.
  void run(const float* x, int64_t x_stride, int64_t rows, float* out, int64_t out_stride,
           Rows of) const;

  int64_t in() const { return weight_.size(1); }
  int64_t out() const { return weight_.size(0); }

 private:
  at::Tensor weight_, bias_;
  OwnFor own_{};
};

}  // namespace posenc::inference
