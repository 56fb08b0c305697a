// x W^T + b for a few rows, which memory bandwidth limits: every element of the weight,
// float32 or bfloat16, comes from memory once, prefetched in the order of its addresses, while
// several of its rows are read side by side. Rows of x beyond those of a tile read it again from
// the cache. Compiled once per instruction set.
//
// The reference path is at::linear; a dot product is made in sixteen partial sums, folded at the
// end (float_lanes.h).
#include "kernels/inference.h"
#include "kernels/isa/float_lanes.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

constexpr int64_t kAheadBytes = 1 << 13;  // which stay in the nearest cache until they are read
constexpr int kFewColumns = 4;            // output columns, or rows of the weight, at a time
// Rows of x and accumulators at a time: as many as fit in the registers in addition to the
// operands.
constexpr int kSums = kRegisters * kBytes / 128, kMostRows = kSums / 2 < 4 ? kSums / 2 : 4;

// Adds elements k .. k + 15 of some rows and columns; only `rest` of them, if it is positive.
// `ahead`: what to prefetch next, or null.
template <int kRows, int kCols, typename Element>
POSENC_INLINE void step(const LinearRequestOf<Element>& p, const float* x, const Element* weight,
                        int64_t rest, const char*& ahead, Wide (&sums)[kRows][kCols]) {
  const auto read = [rest](const auto* from) __attribute__((always_inline)) {
    Wide wide = rest > 0 ? load_wide(from, rest) : load_wide(from);
    for (Floats& part : wide.part) keep_in_register(part);
    return wide;
  };
  if (ahead != nullptr) {
    constexpr int64_t kBlock = kCols * kWide * static_cast<int64_t>(sizeof(Element));
    for (int64_t line = 0; line < kBlock; line += kLineBytes) __builtin_prefetch(ahead + line);
    ahead += kBlock;
  }
  Wide xs[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) xs[r] = read(x + r * p.x_stride);
#pragma GCC unroll 4
  for (int c = 0; c < kCols; ++c) {
    const Wide ws = read(weight + c * p.inner);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r][c] = fma(xs[r], ws, sums[r][c]);
  }
}

// out[r * kFewColumns + c] = x[r] . weight[c], as sixteen partial sums.
template <int kRows, int kCols, typename Element>
POSENC_INLINE void dots(const LinearRequestOf<Element>& p, const float* x, const Element* weight,
                        bool is_first, Wide* out) {
  Wide sums[kRows][kCols] = {};
  const char* ahead = is_first ? reinterpret_cast<const char*>(weight) + kAheadBytes : nullptr;
  const int64_t whole = p.inner / kWide * kWide;
  for (int64_t k = 0; k < whole; k += kWide) step(p, x + k, weight + k, 0, ahead, sums);
  if (whole < p.inner) step(p, x + whole, weight + whole, p.inner - whole, ahead, sums);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kCols; ++c) out[r * kFewColumns + c] = sums[r][c];
}

// Columns n .. n + 3, kRows rows at a time, as long as there are that many; returns the next row.
template <int kRows, typename Element>
POSENC_INLINE int64_t tiles(const LinearRequestOf<Element>& p, int64_t row, int64_t n) {
  constexpr int kCols = kSums / kRows < kFewColumns ? kSums / kRows : kFewColumns;
  for (; row + kRows <= p.rows; row += kRows) {
    const float* const x = p.x + row * p.x_stride;
    Wide sums[kRows * kFewColumns];
#pragma GCC unroll 4
    for (int c = 0; c < kFewColumns; c += kCols)
      dots<kRows, kCols>(p, x, p.weight + (n + c) * p.inner, row == 0, sums + c);
    const Floats4 bias = p.bias != nullptr ? load<Floats4>(p.bias + n) : Floats4{};
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Wide* const s = sums + r * kFewColumns;
      store(p.out + (row + r) * p.out_stride + n, totals(s[0], s[1], s[2], s[3]) + bias);
    }
  }
  return row;
}

// One of the last columns, of which there are too few for a tile.
template <typename Element>
void column(const LinearRequestOf<Element>& p, int64_t n) {
  for (int64_t row = 0; row < p.rows; ++row) {
    Wide sum[1];
    dots<1, 1>(p, p.x + row * p.x_stride, p.weight + n * p.inner, row == 0, sum);
    p.out[row * p.out_stride + n] = total(sum[0]) + (p.bias != nullptr ? p.bias[n] : 0.0f);
  }
}

template <typename Element>
void linear_few(const LinearRequestOf<Element>& p, int64_t begin, int64_t end, float*) {
  int64_t n = begin;
  for (; n + kFewColumns <= end; n += kFewColumns) {
    int64_t row = 0;
    if constexpr (kMostRows >= 4) row = tiles<4>(p, row, n);
    if constexpr (kMostRows >= 2) row = tiles<2>(p, row, n);
    tiles<1>(p, row, n);
  }
  for (; n < end; ++n) column(p, n);
}

}  // namespace

const LinearKernels linear_few_kernels = {linear_few};
const LinearKernelsOf<BFloat16> linear_few_bfloat16_kernels = {linear_few};

}  // namespace posenc::kernels::inference::POSENC_ISA
