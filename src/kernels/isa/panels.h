// Panels: blocks of rows of a matrix, stored column by column, so that a number can be multiplied
// with a whole column at once. Included by the kernel sources, inside the instruction set's own
// namespace.
#pragma once
#include "kernels/inference.h"
#include "kernels/isa/float_lanes.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// Tile size, in columns of the product and registers of rows: as many as fit in the registers in
// addition to the operands; of one register of rows more columns, since the multipliers work on
// several sums at a time.
constexpr int kColumns = kRegisters / 4, kMostColumns = 8;
constexpr int kMostVectors = 3;
constexpr int kPanel = kMostVectors * kFloats;  // the most rows of a panel
constexpr int kGroup = 16;  // columns written at a time: a cache line of each row
static_assert(kPanelRows % kPanel == 0 && kGroup % kColumns == 0);

// The number of registers that a panel's rows take.
POSENC_INLINE int64_t vectors_for(int64_t rows) {
  return rows > 2 * kFloats ? 3 : rows > kFloats ? 2 : 1;
}
// Calls f with that number as a constant: f.template operator()<kVectors>().
template <typename F>
POSENC_INLINE void with_vectors(int64_t rows, F f) {
  switch (vectors_for(rows)) {
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    default: return f.template operator()<3>();
  }
}

// panel[k * width + i] = x[i][k], or zero if there is no such row. width: a multiple of kFloats.
// Works on one cache line of each row at a time, so that the lines being written stay in L1.
POSENC_INLINE void pack(const float* x, int64_t stride, int64_t rows, int64_t inner, int64_t width,
                        float* panel) {
  const auto row_of = [&](int64_t i) { return x + i * stride; };
  int64_t k = 0;
  for (; k + kWide <= inner; k += kWide) {
    for (int64_t i = 0; i < width; i += kFloats) {
      for (int64_t at = k; at < k + kWide; at += kFloats) {
        Floats block[kFloats];
#pragma GCC unroll 16
        for (int j = 0; j < kFloats; ++j)
          block[j] = i + j < rows ? load<Floats>(row_of(i + j) + at) : Floats{};
        transpose(block);
#pragma GCC unroll 16
        for (int j = 0; j < kFloats; ++j) store(panel + (at + j) * width + i, block[j]);
      }
    }
  }
  for (; k < inner; ++k) {
    for (int64_t i = 0; i < width; ++i) panel[k * width + i] = i < rows ? row_of(i)[k] : 0.0f;
  }
}

// The inverse: (columns, width) to rows of `out`, adding a bias per column unless it is null.
POSENC_INLINE void unpack(const float* columns_of, int64_t width, int64_t rows, int64_t columns,
                          const float* bias, float* out, int64_t stride) {
  int64_t c = 0;
  for (; c + kFloats <= columns; c += kFloats) {
    const Floats added = bias != nullptr ? load<Floats>(bias + c) : Floats{};
    for (int64_t i = 0; i < rows; i += kFloats) {
      Floats block[kFloats];
#pragma GCC unroll 16
      for (int j = 0; j < kFloats; ++j) block[j] = load<Floats>(columns_of + (c + j) * width + i);
      transpose(block);
#pragma GCC unroll 16
      for (int j = 0; j < kFloats; ++j)
        if (i + j < rows) store(out + (i + j) * stride + c, block[j] + added);
    }
  }
  for (; c < columns; ++c) {
    const float one = bias != nullptr ? bias[c] : 0.0f;
    for (int64_t i = 0; i < rows; ++i) out[i * stride + c] = columns_of[c * width + i] + one;
  }
}

// The matrix whose elements (column, k) multiply the panel's columns, in one of two layouts.
// line<columns>(k) are elements k .. k + 15 of that many columns.
struct ByRows {  // a column of the product is a row in memory; those of the next tile are
                 // prefetched
  const float* from;
  int64_t stride;
  POSENC_INLINE ByRows skip(int64_t columns) const { return {from + columns * stride, stride}; }
  POSENC_INLINE float at(int64_t c, int64_t k) const { return from[c * stride + k]; }
  POSENC_INLINE void prefetch(int64_t c, int64_t k) const {
    __builtin_prefetch(from + (c + kColumns) * stride + k, 0, 2);
  }
  template <int kCols>
  POSENC_INLINE ByRows line(int64_t k) const {
    return {from + k, stride};
  }
};
// The same in bfloat16, widened a line at a time, since one element alone would take longer.
struct BFloat16ByRows {
  const BFloat16* from;
  int64_t stride;
  POSENC_INLINE BFloat16ByRows skip(int64_t columns) const {
    return {from + columns * stride, stride};
  }
  POSENC_INLINE float at(int64_t c, int64_t k) const {
    return __builtin_bit_cast(float, uint32_t{from[c * stride + k]} << 16);
  }
  POSENC_INLINE void prefetch(int64_t c, int64_t k) const {
    __builtin_prefetch(from + (c + kColumns) * stride + k, 0, 2);
  }
  template <int kCols>
  struct Line {
    alignas(64) float of[kCols][kWide];
    POSENC_INLINE float at(int64_t c, int64_t k) const { return of[c][k]; }
  };
  template <int kCols>
  POSENC_INLINE Line<kCols> line(int64_t k) const {
    Line<kCols> widened;
    for (int c = 0; c < kCols; ++c) store(widened.of[c], load_wide(from + c * stride + k));
    return widened;
  }
};
POSENC_INLINE ByRows by_rows(const float* from, int64_t stride) { return {from, stride}; }
POSENC_INLINE BFloat16ByRows by_rows(const BFloat16* from, int64_t stride) {
  return {from, stride};
}
struct ByColumns {  // a row in memory holds element k of all columns
  const float* from;
  int64_t stride;
  POSENC_INLINE ByColumns skip(int64_t columns) const { return {from + columns, stride}; }
  POSENC_INLINE float at(int64_t c, int64_t k) const { return from[k * stride + c]; }
  POSENC_INLINE void prefetch(int64_t, int64_t) const {}
  template <int kCols>
  POSENC_INLINE ByColumns line(int64_t k) const {
    return {from + k * stride, stride};
  }
};

// What becomes of a sum in register v of a column.
struct Unchanged {
  POSENC_INLINE Floats operator()(int, Floats sum) const { return sum; }
};

// out[c * width + i] = end(sum over k of panel row i [k] * matrix(c, k)), in the order
// k = 0, 1, ...
template <int kVectors, int kCols, typename Matrix, typename End>
POSENC_INLINE void tile(const float* panel, const Matrix& matrix, int64_t inner, float* out,
                        End end) {
  constexpr int kWidth = kVectors * kFloats;
  Floats sums[kCols][kVectors] = {};
  // Adds the products of a column of the panel and the elements k of `some`.
  const auto step = [&](int64_t column, const auto& some, int64_t k)
      __attribute__((always_inline)) {
    Floats x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = load<Floats>(panel + column * kWidth + v * kFloats);
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) {
      const Floats w = broadcast(some.at(c, k));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[c][v] = fma(w, x[v], sums[c][v]);
    }
  };
  const int64_t whole = inner / kWide * kWide;
  for (int64_t line = 0; line < whole; line += kWide) {
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) matrix.prefetch(c, line);
    const auto elements = matrix.template line<kCols>(line);
#pragma GCC unroll 4
    for (int64_t k = 0; k < kWide; ++k) step(line + k, elements, k);
  }
  for (int64_t k = whole; k < inner; ++k) step(k, matrix, k);
#pragma GCC unroll 8
  for (int c = 0; c < kCols; ++c)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(out + c * kWidth + v * kFloats, end(v, sums[c][v]));
}

// The same for columns 0 .. columns - 1.
template <int kVectors, typename Matrix, typename End = Unchanged>
POSENC_INLINE void product(const float* panel, const Matrix& matrix, int64_t inner, int64_t columns,
                           float* out, End end = End()) {
  constexpr int kWidth = kVectors * kFloats;
  int64_t c = 0;
  if constexpr (kVectors == 1 && kColumns < kMostColumns)
    for (; c + kMostColumns <= columns; c += kMostColumns)
      tile<kVectors, kMostColumns>(panel, matrix.skip(c), inner, out + c * kWidth, end);
  for (; c + kColumns <= columns; c += kColumns)
    tile<kVectors, kColumns>(panel, matrix.skip(c), inner, out + c * kWidth, end);
  for (; c < columns; ++c) tile<kVectors, 1>(panel, matrix.skip(c), inner, out + c * kWidth, end);
}

}  // namespace
}  // namespace posenc::kernels::inference::POSENC_ISA
