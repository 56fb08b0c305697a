// ConvBERT's convolution, whose kernels are computed from the rows.

#include "inference/rows/convolution.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

namespace posenc::inference {
namespace {

// Tokens of a sequence that a kernel of `size` around token `i` of `length` sees: offsets
// [first, last) of the kernel.
struct Reach {
  Reach(int64_t i, int64_t length, int64_t size)
      : first(std::max<int64_t>(0, size / 2 - i)), last(std::min(size, length - i + size / 2)) {}
  int64_t first, last;
};

void add_scaled(const float* x, float scale, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] += scale * x[i];
}

void add_products(const float* x, const float* y, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] += x[i] * y[i];
}

void softmax(float* x, int64_t n) {
  const float largest = *std::max_element(x, x + n);
  float total = 0.0F;
  for (int64_t i = 0; i < n; ++i) total += x[i] = std::exp(x[i] - largest);
  for (int64_t i = 0; i < n; ++i) x[i] /= total;
}

}  // namespace

ConvolutionRun::ConvolutionRun(int64_t rows, int64_t embed_dim, int64_t width, int64_t weights) {
  const auto buffer = [&](int64_t columns) { return at::empty({rows, columns}, at::kFloat); };
  rows_ = buffer(width);
  separable_ = buffer(embed_dim);
  gates_ = buffer(width);
  kernels_ = buffer(weights);
}

void ConvolutionRun::project(const Convolution& own, const Stream& part, const float* x,
                             int64_t begin) {
  inference::project(part, own.rows, x, rows_.data_ptr<float>() + begin * own.width(), own.width());
}

void ConvolutionRun::run(const Convolution& own, const Packing& packing, const float* x,
                         const float* queries, int64_t query_stride, int64_t begin, int64_t end,
                         float* out, int64_t out_stride, RowRegime regime) {
  const int64_t width = own.width(), size = own.size, reach = size / 2;
  const int64_t embed_dim = own.depthwise.size(1), head_dim = width / own.heads;
  const int64_t weights = own.heads * size, count = end - begin, length = packing.length;
  float* const separable = separable_.data_ptr<float>();
  float* const gates = gates_.data_ptr<float>();
  float* const kernels = kernels_.data_ptr<float>();
  const float* const rows = rows_.const_data_ptr<float>();
  const float* const depthwise = own.depthwise.const_data_ptr<float>();
  split_rows(count, embed_dim * size, [&](int64_t first, int64_t last) {
    for (int64_t row = begin + first; row < begin + last; ++row) {
      float* const sum = separable + row * embed_dim;
      std::fill_n(sum, embed_dim, 0.0F);
      const Reach seen(row % length, length, size);
      for (int64_t k = seen.first; k < seen.last; ++k)
        add_products(x + (row + k - reach) * embed_dim, depthwise + k * embed_dim, embed_dim, sum);
    }
  });
  own.pointwise.run(separable + begin * embed_dim, count, gates + begin * width, regime);
  split_rows(count, width, [&](int64_t first, int64_t last) {
    for (int64_t row = begin + first; row < begin + last; ++row)
      for (int64_t i = 0; i < width; ++i) gates[row * width + i] *= queries[row * query_stride + i];
  });
  own.kernel.run(gates + begin * width, count, kernels + begin * weights, regime);
  split_rows(count, width * size, [&](int64_t first, int64_t last) {
    for (int64_t row = begin + first; row < begin + last; ++row) {
      const Reach seen(row % length, length, size);
      std::fill_n(out + row * out_stride, width, 0.0F);
      for (int64_t head = 0; head < own.heads; ++head) {
        float* const kernel = kernels + row * weights + head * size;
        softmax(kernel, size);
        float* const sum = out + row * out_stride + head * head_dim;
        for (int64_t k = seen.first; k < seen.last; ++k)
          add_scaled(rows + (row + k - reach) * width + head * head_dim, kernel[k], head_dim, sum);
      }
    }
  });
}

}  // namespace posenc::inference
