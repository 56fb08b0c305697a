// x W^T + b in 8 bits: int8.h has the arithmetic. The weight is read once, in order, for the rows
// of a tile; the sums of a tile stay in registers. Compiled once per instruction set.
#include "kernels/int8.h"
#include "kernels/isa/dots.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::int8::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

constexpr int kPerBlock = kBlock / kFloats;  // registers of a block

// The sums of a tile fit in the registers in addition to the operands.
constexpr int kMostRows = kMostSums / 2;
// The registers of columns in a tile of that many rows: as few as keep the multipliers busy, since
// the weight of the first tile is not prefetched.
constexpr int vectors_for(int rows) { return rows == 1 ? 4 : 2; }

// out = the sums as floats, in columns n .. n + kVectors * kFloats - 1 of one row.
template <int kVectors>
POSENC_INLINE void write(const LinearRequest& p, int64_t row, int64_t n, const Sums* sums) {
  const Floats unit = p.x_units[row] - Floats{};
  float* const out = p.out + row * p.out_stride + n;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = v * kFloats;
    if (n + at >= p.outer) return;
    const Floats y = __builtin_convertvector(total(sums[v]), Floats) *
                     load<Floats>(p.weight_units + n + at) * unit;
    if (n + at + kFloats <= p.outer) {
      store(out + at, p.bias != nullptr ? y + load<Floats>(p.bias + n + at) : y);
    } else {
      for (int64_t i = 0; i < p.outer - n - at; ++i)
        out[at + i] = p.bias != nullptr ? y[i] + p.bias[n + at + i] : y[i];
    }
  }
}

// What a tile prefetches of the weight: columns that are `columns` further on than its own. If
// there are several tiles of rows, each prefetches its share of the same columns; otherwise the
// first one would wait for memory, which the others would leave idle.
struct Ahead {
  int64_t columns, tile, tiles;
};

// Rows row .. row + kRows - 1 and kVectors registers of columns from n on. kOnly: there is one tile
// of rows.
template <int kRows, int kVectors, bool kOnly>
POSENC_INLINE void tile(const LinearRequest& p, int64_t row, int64_t n, const Ahead& ahead) {
  const int64_t bytes = row_bytes(p.inner), block = bytes * kBlock;
  const int8_t* weight[(kVectors + kPerBlock - 1) / kPerBlock];
  for (int v = 0; v < kVectors; v += kPerBlock)
    weight[v / kPerBlock] = p.weight + (n / kBlock + v / kPerBlock) * block + n % kBlock * kStep;
  const uint8_t* const x = p.x + row * bytes;
  // Each step reads kWidth bytes of the weight, and prefetches `pace`.
  constexpr int64_t kWidth = int64_t{kVectors} * kBytes;
  constexpr int64_t kMostLines = (kOnly ? kWidth : kWidth / 2) / kLineBytes;
  constexpr int64_t kLines = kMostLines > 1 ? kMostLines : 1;
  const int64_t pace = kOnly ? kWidth : kWidth / ahead.tiles;
  const int8_t* next = p.weight + (n + (kOnly ? kVectors * kFloats : ahead.columns)) * bytes +
                       ahead.tile * pace * (bytes / kStep);
  Sums sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    const Words minus_zero = static_cast<uint32_t>(p.x_minus_zeros[row + r]) + Words{};
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = sums_from(
          reinterpret_cast<Ints>(minus_zero * load<Words>(p.weight_sums + n + v * kFloats)));
  }
#pragma GCC unroll 2
  for (int64_t k = 0; k < bytes; k += kStep) {
#pragma GCC unroll 4
    for (int64_t line = 0; line < kLines; ++line) __builtin_prefetch(next + line * kLineBytes);
    next += pace;
    Weights w[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      w[v] = load_weights(weight[v / kPerBlock] + k * kBlock + v % kPerBlock * kBytes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Bytes4 four = load_bytes4(x + r * bytes + k);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) add(sums[r][v], w[v], four);
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
constexpr int64_t kColumns = 64;

void linear(const LinearRequest& p, int64_t begin, int64_t end) {
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

}  // namespace

const LinearKernels linear_int8_kernels = {linear};

}  // namespace posenc::kernels::int8::POSENC_ISA
