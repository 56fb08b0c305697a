// Rows times a packed weight (int8.h, bfloat16.h), whatever the operands: a step of a row, and of a
// column of the weight, has kStepBytes. The weight is read once, in order, for the rows of a tile;
// the sums of a tile stay in registers. Included by the kernel sources, inside the instruction
// set's own namespace.
//
// A Product has its `request`, a LinearRequest of int8.h or bfloat16.h, and
//
//   row_elements()  of a row of x, and of a column of the weight
//   kMostRows       of a tile, two registers of columns wide: its sums fit in the registers in
//                   addition to the operands
//   kColumns        at a time: few enough that they stay in the nearest cache while all rows pass
//   kOneSpan        whether the sums are those of whole rows. Otherwise rows have spans() parts of
//                   span_elements() each, of which the last one may be shorter, with sums of their
//                   own
//   first_sums(row, span)  of n: the Sums of kFloats columns from n on before the first product
//   weights(from)   a register of the weight, prepared for several rows
//   step(from)      a step of a row, for all columns
//   add(sums, w, x)
//   results(row, span)  of n and the sums: what they become. Those of spans are added, in order
//   plus(result, bias)
#pragma once
#include <stdint.h>

#include "kernels/isa/ops.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

constexpr int64_t kBlockColumns = 16, kStepBytes = 4;
constexpr int kRegistersOfBlock = kBlockColumns / kFloats;

// The registers of columns in a tile of that many rows: as few as keep the multipliers busy, since
// the weight of the first tile is not prefetched.
constexpr int vectors_for(int rows) { return rows == 1 ? 4 : 2; }

POSENC_INLINE Floats first_floats(const float* from, int64_t count) {
  Floats some = {};
  for (int64_t i = 0; i < count; ++i) some[i] = from[i];
  return some;
}

// The results in columns n .. n + kVectors * kFloats - 1 of one row, which are result(v).
template <int kVectors, typename Product, typename Result>
POSENC_INLINE void write_results(const Product& p, int64_t row, int64_t n, Result result) {
  const auto& q = p.request;
  float* const out = q.out + row * q.out_stride + n;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = v * kFloats, count = q.outer - n - at;
    if (count <= 0) return;
    const Floats y = result(v);
    if (count >= kFloats) {
      store(out + at, q.bias != nullptr ? p.plus(y, load<Floats>(q.bias + n + at)) : y);
    } else {
      const Floats last = q.bias != nullptr ? p.plus(y, first_floats(q.bias + n + at, count)) : y;
      for (int64_t i = 0; i < count; ++i) out[at + i] = last[i];
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
template <int kRows, int kVectors, bool kOnly, typename Product>
POSENC_INLINE void packed_tile(const Product& p, int64_t row, int64_t n, const Ahead& ahead) {
  constexpr int64_t kStep = kStepBytes / int64_t{sizeof(*p.request.x)};  // in elements
  const int64_t elements = p.row_elements(), block = elements * kBlockColumns;
  decltype(p.request.weight) weight[(kVectors + kRegistersOfBlock - 1) / kRegistersOfBlock];
  for (int v = 0; v < kVectors; v += kRegistersOfBlock)
    weight[v / kRegistersOfBlock] = p.request.weight +
                                    (n / kBlockColumns + v / kRegistersOfBlock) * block +
                                    n % kBlockColumns * kStep;
  const auto* const x = p.request.x + row * elements;
  // Each step reads kWidth bytes of the weight, and prefetches `pace`.
  constexpr int64_t kWidth = int64_t{kVectors} * kBytes;
  constexpr int64_t kMostLines = (kOnly ? kWidth : kWidth / 2) / kLineBytes;
  constexpr int64_t kLines = kMostLines > 1 ? kMostLines : 1;
  const int64_t pace = kOnly ? kWidth : kWidth / ahead.tiles;
  const char* next =
      reinterpret_cast<const char*>(p.request.weight +
                                    (n + (kOnly ? kVectors * kFloats : ahead.columns)) * elements) +
      ahead.tile * pace * (elements / kStep);
  typename Product::Sums sums[kRows][kVectors];
  // The sums of a span: of elements [k, end).
  const auto multiply = [&](int64_t span, int64_t k, int64_t end) __attribute__((always_inline)) {
    for (int r = 0; r < kRows; ++r) {
      const auto first = p.first_sums(row + r, span);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = first(n + v * kFloats);
    }
#pragma GCC unroll 2
    for (; k < end; k += kStep) {
#pragma GCC unroll 4
      for (int64_t line = 0; line < kLines; ++line) __builtin_prefetch(next + line * kLineBytes);
      next += pace;
      decltype(p.weights(weight[0])) w[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        w[v] = p.weights(weight[v / kRegistersOfBlock] + k * kBlockColumns +
                         v % kRegistersOfBlock * kFloats * kStep);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const auto one = p.step(x + r * elements + k);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) p.add(sums[r][v], w[v], one);
      }
    }
  };
  if constexpr (Product::kOneSpan) {
    multiply(0, 0, elements);
    for (int r = 0; r < kRows; ++r) {
      const auto result = p.results(row + r, 0);
      write_results<kVectors>(
          p, row + r, n, [&](int v) __attribute__((always_inline)) {
            return result(n + v * kFloats, sums[r][v]);
          });
    }
  } else {
    Floats totals[kRows][kVectors];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) totals[r][v] = -0.0f - Floats{};  // x + -0 is x
    }
    const int64_t spans = p.spans(), length = p.span_elements();
    for (int64_t span = 0; span < spans; ++span) {
      const int64_t k = span * length;
      multiply(span, k, span + 1 < spans ? k + length : elements);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const auto result = p.results(row + r, span);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) totals[r][v] += result(n + v * kFloats, sums[r][v]);
      }
    }
    for (int r = 0; r < kRows; ++r)
      write_results<kVectors>(
          p, row + r, n, [&](int v) __attribute__((always_inline)) { return totals[r][v]; });
  }
}

// kRows rows of columns [n, end), in tiles that are narrower at the end.
template <int kRows, int kVectors, bool kOnly, typename Product>
POSENC_INLINE void packed_columns(const Product& p, int64_t row, int64_t n, int64_t end,
                                  const Ahead& ahead) {
  for (; n + kVectors * kFloats <= end; n += kVectors * kFloats)
    packed_tile<kRows, kVectors, kOnly>(p, row, n, ahead);
  if constexpr (kVectors > 1) {
    if (n < end) packed_columns<kRows, kVectors / 2, kOnly>(p, row, n, end, ahead);
  }
}

// Rows row .. row + rows - 1, at most kRows, of columns [n, end).
template <bool kOnly, int kRows, typename Product>
void packed_rows(const Product& p, int64_t row, int64_t rows, int64_t n, int64_t end,
                 const Ahead& ahead) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return packed_rows<kOnly, kRows - 1>(p, row, rows, n, end, ahead);
  }
  packed_columns<kRows, vectors_for(kRows), kOnly>(p, row, n, end, ahead);
}

// Columns [begin, end), which are whole blocks, of all rows.
template <typename Product>
POSENC_INLINE void multiply_packed(const Product& p, int64_t begin, int64_t end) {
  constexpr int kMostRows = Product::kMostRows;
  const int64_t all = p.request.rows;
  if (all <= kMostRows) return packed_rows<true, kMostRows>(p, 0, all, begin, end, {0, 0, 1});
  const int64_t tiles = (all + kMostRows - 1) / kMostRows;
  for (int64_t n = begin; n < end; n += Product::kColumns) {
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t row = all * i / tiles, rows = all * (i + 1) / tiles - row;
      packed_rows<false, kMostRows>(p, row, rows, n,
                                    n + Product::kColumns < end ? n + Product::kColumns : end,
                                    {Product::kColumns, i, tiles});
    }
  }
}

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
