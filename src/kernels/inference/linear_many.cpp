// x W^T + b for many rows. The rows of x are turned into panels, whose columns lie side by side;
// each element of the weight, where it lies, is then multiplied with a whole column of each panel.
// So the small matrix is packed, not the large one, and a few rows of the weight are in the first
// cache while all panels pass. Compiled once per instruction set.
//
// The slow twin is at::linear; an element of the result is one sum over k = 0, 1, ..., fused.
#include "kernels/inference/kernels.h"
#include "kernels/inference/lanes.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

constexpr int64_t kAhead = 4096;  // floats, as in linear_few.cpp
constexpr int kGroup = 16;        // columns of out that are written at a time: a line of each row
// Columns of out and registers of rows at a time: what the registers hold beside the operands.
#if defined(__AVX512F__)
constexpr int kColumns = 8;
#else
constexpr int kColumns = 4;
#endif
constexpr int kMostVectors = 3;
static_assert(kPanelRows % (kMostVectors * kFloats) == 0);

// panel[k * width + i] = x[i][k], zeros where there is no such row. width: a multiple of 4.
void pack(const float* x, int64_t stride, int64_t rows, int64_t inner, int64_t width,
          float* panel) {
  const auto row_of = [&](int64_t i) { return x + i * stride; };
  for (int64_t i = 0; i < width; i += 4) {
    int64_t k = 0;
    for (; k + 4 <= inner; k += 4) {
      Floats4 r[4];
      for (int j = 0; j < 4; ++j)
        r[j] = i + j < rows ? load<Floats4>(row_of(i + j) + k) : Floats4{};
      _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
      for (int j = 0; j < 4; ++j) store(panel + (k + j) * width + i, r[j]);
    }
    for (; k < inner; ++k) {
      for (int j = 0; j < 4; ++j) panel[k * width + i + j] = i + j < rows ? row_of(i + j)[k] : 0.0f;
    }
  }
}

// sums[c * width + i] = panel row i . weight row c
template <int kVectors, int kCols>
POSENC_INLINE void tile(const float* panel, const float* weight, int64_t inner, float* out) {
  constexpr int kWidth = kVectors * kFloats;
  Floats sums[kCols][kVectors] = {};
  const auto step = [&](int64_t k) __attribute__((always_inline)) {
    Floats x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = load<Floats>(panel + k * kWidth + v * kFloats);
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) {
      const Floats w = all(weight[c * inner + k]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[c][v] = fma(w, x[v], sums[c][v]);
    }
  };
  const int64_t whole = inner / kWide * kWide;
  for (int64_t line = 0; line < whole; line += kWide) {
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) __builtin_prefetch(weight + c * inner + line + kAhead, 0, 2);
#pragma GCC unroll 4
    for (int64_t k = 0; k < kWide; ++k) step(line + k);
  }
  for (int64_t k = whole; k < inner; ++k) step(k);
#pragma GCC unroll 8
  for (int c = 0; c < kCols; ++c)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(out + c * kWidth + v * kFloats, sums[c][v]);
}

// Columns n .. n + columns - 1 of out from their sums (columns, width), which change places.
void write(const Linear& p, int64_t row, int64_t rows, int64_t n, int64_t columns, int64_t width,
           const float* sums) {
  for (int64_t i = 0; i < rows; i += 4) {
    float* const out = p.out + (row + i) * p.out_stride + n;
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
      Floats4 r[4];
      for (int j = 0; j < 4; ++j) r[j] = load<Floats4>(sums + (c + j) * width + i);
      _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
      const Floats4 bias = p.bias != nullptr ? load<Floats4>(p.bias + n + c) : Floats4{};
      for (int j = 0; j < 4 && i + j < rows; ++j) store(out + j * p.out_stride + c, r[j] + bias);
    }
    for (; c < columns; ++c) {
      const float bias = p.bias != nullptr ? p.bias[n + c] : 0.0f;
      for (int j = 0; j < 4 && i + j < rows; ++j)
        out[j * p.out_stride + c] = sums[c * width + i + j] + bias;
    }
  }
}

// The columns n .. of out, at most kGroup, for the rows of one panel.
template <int kVectors>
void panel_product(const Linear& p, int64_t row, int64_t rows, int64_t n, int64_t columns,
                   const float* panel) {
  constexpr int kWidth = kVectors * kFloats;
  alignas(64) float sums[kGroup * kWidth];
  const float* const weight = p.weight + n * p.inner;
  int64_t c = 0;
  for (; c + kColumns <= columns; c += kColumns)
    tile<kVectors, kColumns>(panel, weight + c * p.inner, p.inner, sums + c * kWidth);
  for (; c < columns; ++c)
    tile<kVectors, 1>(panel, weight + c * p.inner, p.inner, sums + c * kWidth);
  write(p, row, rows, n, columns, kWidth, sums);
}

// How many registers a panel's rows take.
int64_t vectors_for(int64_t rows) { return rows > 2 * kFloats ? 3 : rows > kFloats ? 2 : 1; }

// f(row, rows, panel's memory) for the panels of the rows begin .. end - 1.
template <typename F>
POSENC_INLINE void by_panel(const Linear& p, int64_t begin, int64_t end, float* scratch, F f) {
  for (int64_t row = begin; row < end; row += kMostVectors * kFloats) {
    const int64_t left = end - row;
    f(row, left < kMostVectors * kFloats ? left : kMostVectors * kFloats,
      scratch + (row - begin) * p.inner);
  }
}

void linear_many(const Linear& p, int64_t begin, int64_t end, float* scratch) {
  const int64_t most = packed_rows(p.inner) / (kMostVectors * kFloats) * (kMostVectors * kFloats);
  for (int64_t row = 0; row < p.rows; row += most) {
    const int64_t last = row + most < p.rows ? row + most : p.rows;
    by_panel(p, row, last, scratch, [&](int64_t first, int64_t rows, float* panel) {
      pack(p.x + first * p.x_stride, p.x_stride, rows, p.inner, vectors_for(rows) * kFloats, panel);
    });
    for (int64_t n = begin; n < end; n += kGroup) {
      const int64_t columns = end - n < kGroup ? end - n : kGroup;
      by_panel(p, row, last, scratch, [&](int64_t first, int64_t rows, const float* panel) {
        switch (vectors_for(rows)) {
          case 1: return panel_product<1>(p, first, rows, n, columns, panel);
          case 2: return panel_product<2>(p, first, rows, n, columns, panel);
          default: return panel_product<3>(p, first, rows, n, columns, panel);
        }
      });
    }
  }
}

}  // namespace

const LinearKernels many_kernels = {linear_many};

}  // namespace posenc::kernels::inference::POSENC_ISA
