#include "inference/linear/largest_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <limits>

#include "base/platform/memory.h"

namespace posenc::inference {
namespace {

// Products of that many rows and columns are made at a time: they stay in the L2 cache, and so does
// the part of the weight while all rows pass.
constexpr int64_t kPartRows = 192, kPartWidth = 512;
constexpr int64_t kLeastProducts = 1 << 18;  // of a thread

struct Factor {
  const Projection& projection;
  const float* x;
  at::Tensor memory;  // of the converted rows
  ConvertedRows converted;
};

std::vector<Factor> factors_of(const std::vector<ProductOfColumns>& products,
                               const at::Tensor& rows) {
  std::vector<Factor> factors;
  for (const auto& [projection, begin] : products) {
    Factor factor = {*projection, rows.const_data_ptr<float>() + begin, {}, {}};
    const RowFormat format = projection->row_format();
    if (format != RowFormat::Float32) {
      factor.memory =
          at::empty({ConvertedRows::floats(format, rows.size(0), projection->in())}, at::kFloat);
      factor.converted =
          ConvertedRows(format, factor.memory.data_ptr<float>(), rows.size(0), projection->in());
      factor.converted.convert(factor.x, rows.size(1), rows.size(0));
    }
    factors.push_back(std::move(factor));
  }
  return factors;
}

// Columns of the sum of all products for `count` rows from `row` on.
void sum_products(const std::vector<Factor>& factors, int64_t stride, int64_t row, int64_t count,
                  ColumnPart part, RowRegime regime, float* out, float* other) {
  const int64_t width = part.end - part.begin;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const Factor& factor = factors[i];
    float* const to = i == 0 ? out : other;
    factor.projection.run(factor.x + row * stride, stride, factor.converted.from(row), count, to,
                          width, regime, part);
    if (i == 0) continue;
    for (int64_t j = 0; j < count * width; ++j) out[j] += other[j];
  }
}

void raise(float* largest, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) largest[i] = x[i] > largest[i] ? x[i] : largest[i];
}

}  // namespace

at::Tensor largest_rows(const std::vector<ProductOfColumns>& products, const at::Tensor& rows,
                        const std::vector<int64_t>& lengths) {
  const int64_t width = products.front().projection->out(), count = rows.size(0);
  at::Tensor largest =
      at::full({std::ssize(lengths), width}, -std::numeric_limits<float>::infinity(), at::kFloat);
  if (count == 0) return largest;
  const at::Tensor x = rows.contiguous();
  const std::vector<Factor> factors = factors_of(products, x);
  std::vector<int64_t> segment_of;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    segment_of.insert(segment_of.end(), static_cast<std::size_t>(lengths[i]),
                      static_cast<int64_t>(i));
  TORCH_INTERNAL_ASSERT(std::ssize(segment_of) == count);
  const RowRegime regime = row_regime(count);
  auto* const out = largest.data_ptr<float>();
  const auto work = [&](int64_t begin, int64_t end) {
    float* const buffer = platform::scratch(platform::Scratch::Hidden, 2 * kPartRows * kPartWidth);
    for (int64_t i = begin; i < end; ++i) {
      const ColumnPart part = {i * kPartWidth, std::min((i + 1) * kPartWidth, width)};
      const int64_t columns = part.end - part.begin;
      for (int64_t row = 0; row < count; row += kPartRows) {
        const int64_t own = std::min(kPartRows, count - row);
        sum_products(factors, x.size(1), row, own, part, regime, buffer,
                     buffer + kPartRows * kPartWidth);
        for (int64_t j = 0; j < own; ++j)
          raise(out + segment_of[static_cast<std::size_t>(row + j)] * width + part.begin,
                buffer + j * columns, columns);
      }
    }
  };
  share_work((width + kPartWidth - 1) / kPartWidth, kPartWidth * x.size(1) * count, kLeastProducts,
             work);
  return largest;
}

}  // namespace posenc::inference
