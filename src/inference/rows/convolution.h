#pragma once

#include "inference/rows/packing.h"
#include "inference/rows/stream.h"
#include "posenc/transformer/attention/convolutional_attention.h"

namespace posenc::inference {

/// The convolution of a ConvolutionalAttention; W is its width, K that of its kernels.
struct Convolution {
  at::Tensor depthwise;          ///< (K, E), the module's transposed
  Projection pointwise, kernel;  ///< (W, E), (heads * K, W)
  Projection rows;               ///< (W, E), of what is convolved
  int64_t heads, size;           ///< size: K

  int64_t width() const { return rows.out(); }
};

/// Its buffers for a batch.
class ConvolutionRun {
 public:
  /// `weights` is the largest heads * K of its layers.
  ConvolutionRun(int64_t rows, int64_t embed_dim, int64_t width, int64_t weights);

  /// Projects what layers convolve: the rows of `part`, whose input is `x` and whose first row is
  /// row `begin` of all.
  void project(const Convolution& own, const Stream& part, const float* x, int64_t begin);
  /// Rows [begin, end) of the result (., W), whose rows are `out_stride` apart, once all rows are
  /// projected. x (., E) and queries (., W), the rows of which are `query_stride` apart, are those
  /// of the batch, whose sequences have no row dropped.
  void run(const Convolution& own, const Packing& packing, const float* x, const float* queries,
           int64_t query_stride, int64_t begin, int64_t end, float* out, int64_t out_stride,
           RowRegime regime);

 private:
  at::Tensor rows_, separable_, gates_, kernels_;
};

}  // namespace posenc::inference
