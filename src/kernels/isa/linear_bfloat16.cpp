// x W^T + b in bfloat16: bfloat16.h has the arithmetic. The weight is read once, in order, for the
// rows of a tile; the sums of a tile stay in registers. Compiled once per instruction set.
#include "kernels/bfloat16.h"
#include "kernels/isa/pairs.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::bfloat16::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;
using namespace posenc::kernels::inference::POSENC_ISA;

constexpr int kMostRows = kPairSums / 2;
// The registers of columns in a tile of that many rows: as few as keep the multipliers busy.
constexpr int vectors_for(int rows) { return rows == 1 ? 4 : 2; }

// out = the sums, in columns n .. n + kVectors * kFloats - 1 of one row.
template <int kVectors>
POSENC_INLINE void write(const LinearRequest& p, int64_t row, int64_t n, const Floats* sums) {
  float* const out = p.out + row * p.out_stride + n;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = v * kFloats;
    if (n + at >= p.outer) return;
    if (n + at + kFloats <= p.outer) {
      store(out + at, p.bias != nullptr ? sums[v] + load<Floats>(p.bias + n + at) : sums[v]);
    } else {
      for (int64_t i = 0; i < p.outer - n - at; ++i)
        out[at + i] = p.bias != nullptr ? sums[v][i] + p.bias[n + at + i] : sums[v][i];
    }
  }
}

// What a tile prefetches of the weight: columns that are `columns` further on than its own. If
// there are several tiles of rows, each prefetches its share of the same columns.
struct Ahead {
  int64_t columns, tile, tiles;
};

// Rows row .. row + kRows - 1 and kVectors registers of columns from n on. kOnly: there is one tile
// of rows.
template <int kRows, int kVectors, bool kOnly>
POSENC_INLINE void tile(const LinearRequest& p, int64_t row, int64_t n, const Ahead& ahead) {
  constexpr int kPerBlock = kBlock / kFloats;  // registers of a block
  const int64_t elements = row_elements(p.inner);
  const BFloat16* weight[(kVectors + kPerBlock - 1) / kPerBlock];
  for (int v = 0; v < kVectors; v += kPerBlock)
    weight[v / kPerBlock] =
        p.weight + (n / kBlock + v / kPerBlock) * elements * kBlock + n % kBlock * kPair;
  const BFloat16* const x = p.x + row * elements;
  // Each step reads kWidth bytes of the weight, and prefetches `pace`.
  constexpr int64_t kWidth = int64_t{kVectors} * kBytes;
  constexpr int64_t kMostLines = (kOnly ? kWidth : kWidth / 2) / kLineBytes;
  constexpr int64_t kLines = kMostLines > 1 ? kMostLines : 1;
  const int64_t pace = kOnly ? kWidth : kWidth / ahead.tiles;
  const char* next = reinterpret_cast<const char*>(
                         p.weight + (n + (kOnly ? kVectors * kFloats : ahead.columns)) * elements) +
                     ahead.tile * pace * (elements / kPair);
  Floats sums[kRows][kVectors] = {};
#pragma GCC unroll 2
  for (int64_t k = 0; k < elements; k += kPair) {
#pragma GCC unroll 4
    for (int64_t line = 0; line < kLines; ++line) __builtin_prefetch(next + line * kLineBytes);
    next += pace;
    Pairs w[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      w[v] = load_pairs(weight[v / kPerBlock] + k * kBlock + v % kPerBlock * kFloats * kPair);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Pairs pair = broadcast_pair(x + r * elements + k);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) add_pairs(sums[r][v], w[v], pair);
    }
  }
  for (int r = 0; r < kRows; ++r) write<kVectors>(p, row + r, n, sums[r]);
}

// kRows rows of columns [n, end), in tiles that are narrower at the end.
template <int kRows, int kVectors, bool kOnly>
POSENC_INLINE void columns(const LinearRequest& p, int64_t row, int64_t n, int64_t end,
                           const Ahead& ahead) {
  for (; n + kVectors * kFloats <= end; n += kVectors * kFloats)
    tile<kRows, kVectors, kOnly>(p, row, n, ahead);
  if constexpr (kVectors > 1) {
    if (n < end) columns<kRows, kVectors / 2, kOnly>(p, row, n, end, ahead);
  }
}

// Rows row .. row + rows - 1, at most kRows, of columns [n, end).
template <bool kOnly, int kRows = kMostRows>
void rows_of(const LinearRequest& p, int64_t row, int64_t rows, int64_t n, int64_t end,
             const Ahead& ahead) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return rows_of<kOnly, kRows - 1>(p, row, rows, n, end, ahead);
  }
  columns<kRows, vectors_for(kRows), kOnly>(p, row, n, end, ahead);
}

// At a time: few enough that they stay in the nearest cache while all rows pass.
constexpr int64_t kColumns = 32;

__attribute__((noinline)) void multiply(const LinearRequest& p, int64_t begin, int64_t end) {
  const int64_t last = end * kBlock;
  if (p.rows <= kMostRows) return rows_of<true>(p, 0, p.rows, begin * kBlock, last, {0, 0, 1});
  const int64_t tiles = (p.rows + kMostRows - 1) / kMostRows;
  for (int64_t n = begin * kBlock; n < last; n += kColumns) {
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t row = p.rows * i / tiles, rows = p.rows * (i + 1) / tiles - row;
      rows_of<false>(p, row, rows, n, n + kColumns < last ? n + kColumns : last,
                     {kColumns, i, tiles});
    }
  }
}

void linear(const LinearRequest& p, int64_t begin, int64_t end) {
  const Flushing flushing;
  multiply(p, begin, end);
}

}  // namespace

const LinearKernels linear_bfloat16_kernels = {linear};

}  // namespace posenc::kernels::bfloat16::POSENC_ISA
