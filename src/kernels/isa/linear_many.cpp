// x W^T + b for many rows. The rows of x are packed into panels, stored column by column; each
// element of the weight, read in place, is then multiplied with a whole column of each panel. So
// the small matrix is packed, not the large one, and a few rows of the weight stay in L1 while all
// panels pass. Compiled once per instruction set.
//
// The reference path is at::linear; each element of the result is one fused sum over k = 0, 1, ...
#include "kernels/isa/panels.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// At most kGroup columns of out, starting at n, for the rows of one panel.
template <int kVectors, typename Element>
void panel_product(const LinearRequestOf<Element>& p, int64_t row, int64_t rows, int64_t n,
                   int64_t columns, const float* panel) {
  constexpr int kWidth = kVectors * kFloats;
  alignas(64) float sums[kGroup * kWidth];
  float* const out = p.out + row * p.out_stride + n;
  for (int64_t i = 0; i < rows; ++i) __builtin_prefetch(out + i * p.out_stride, 1);
  product<kVectors>(panel, by_rows(p.weight + n * p.inner, p.inner), p.inner, columns, sums);
  unpack(sums, kWidth, rows, columns, p.bias != nullptr ? p.bias + n : nullptr, out, p.out_stride);
}

// Calls f(row, rows, panel's memory) for the panels of rows begin .. end - 1.
template <typename Element, typename F>
POSENC_INLINE void by_panel(const LinearRequestOf<Element>& p, int64_t begin, int64_t end,
                            float* scratch, F f) {
  for (int64_t row = begin; row < end; row += kPanel) {
    const int64_t left = end - row;
    f(row, left < kPanel ? left : kPanel, scratch + (row - begin) * p.inner);
  }
}

template <typename Element>
void linear_many(const LinearRequestOf<Element>& p, int64_t begin, int64_t end, float* scratch) {
  const int64_t most = packed_rows(p.inner) / kPanel * kPanel;
  for (int64_t row = 0; row < p.rows; row += most) {
    const int64_t last = row + most < p.rows ? row + most : p.rows;
    by_panel(p, row, last, scratch, [&](int64_t first, int64_t rows, float* panel) {
      pack(p.x + first * p.x_stride, p.x_stride, rows, p.inner, vectors_for(rows) * kFloats, panel);
    });
    for (int64_t n = begin; n < end; n += kGroup) {
      const int64_t columns = end - n < kGroup ? end - n : kGroup;
      by_panel(p, row, last, scratch, [&](int64_t first, int64_t rows, const float* panel) {
        with_vectors(rows, [&]<int kVectors>() {
          panel_product<kVectors>(p, first, rows, n, columns, panel);
        });
      });
    }
  }
}

}  // namespace

const LinearKernels linear_many_kernels = {linear_many};
const LinearKernelsOf<BFloat16> linear_many_bfloat16_kernels = {linear_many};

}  // namespace posenc::kernels::inference::POSENC_ISA
