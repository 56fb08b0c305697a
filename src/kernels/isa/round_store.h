// Stores finished entries in a row, for every layout. Included by the kernel sources, inside the
// instruction set's own namespace: nothing here is shared between sets.
#pragma once
#include "kernels/isa/ops.h"
#include "kernels/sincos.h"

namespace posenc::kernels::sincos::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

constexpr int kBlock = 64;  // frequencies processed at a time: their staged entries stay in L1

// Stores whole cache lines with non-temporal stores.
POSENC_INLINE void stream_block(void* to, const void* from, size_t bytes) {
  for (size_t j = 0; j < bytes; j += 16)
    stream16(static_cast<char*>(to) + j, static_cast<const char*>(from) + j);
}
// Whether a block can be stored so: `to` is aligned for it.
POSENC_INLINE bool streams(const RowsRequest& r, const void* to) {
  return kStreams && r.stream && (reinterpret_cast<uintptr_t>(to) & 15) == 0;
}

template <typename T>
void store_strided(const RowsRequest& r, T* to, int64_t stride, const T* from, int64_t n) {
  if (n <= 0) return;
  if (stride == 1 && n == kBlock && streams(r, to)) {
    stream_block(to, from, sizeof(T) * kBlock);
  } else if (stride == 1 && n == kBlock) {  // a constant size: the compiler inlines the copy
    memcpy(to, from, sizeof(T) * kBlock);
  } else if (stride == 1) {
    memcpy(to, from, sizeof(T) * static_cast<size_t>(n));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * stride] = from[i];
  }
}

// Interleaves a block of entries; a constant trip count lets the compiler use whole vectors.
template <typename T>
POSENC_INLINE void interleave_block(T* __restrict to, const T* __restrict even,
                                    const T* __restrict odd) {
  for (int i = 0; i < kBlock; ++i) {
    to[2 * i] = even[i];
    to[2 * i + 1] = odd[i];
  }
}

template <typename T>
void store_pairs(const RowsRequest& r, T* to, const T* even, const T* odd, int64_t n) {
  if (n != kBlock) {
    for (int64_t i = 0; i < n; ++i) {
      to[2 * i] = even[i];
      to[2 * i + 1] = odd[i];
    }
  } else if (streams(r, to)) {
    alignas(64) T staged[2 * kBlock];
    interleave_block(staged, even, odd);
    stream_block(to, staged, sizeof staged);
  } else {
    interleave_block(to, even, odd);
  }
}

inline int64_t clipped(int64_t count, int64_t from, int64_t n) {
  const int64_t left = count - from;
  return left < 0 ? 0 : left < n ? left : n;
}

// Stores entries from..from+n-1 of both functions in their columns of row i.
template <typename T>
POSENC_INLINE void store_row(const RowsRequest& r, int64_t i, int64_t from, int64_t n,
                             const T* sine, const T* cosine) {
  const RowLayout& at = *r.layout;
  T* const row = static_cast<T*>(r.out) + i * at.row_stride;
  const int64_t sines = clipped(at.sin_count, from, n);
  const int64_t cosines = clipped(at.cos_count, from, n);
  T* const sin_to = row + at.sin_offset + from * at.sin_stride;
  T* const cos_to = row + at.cos_offset + from * at.cos_stride;
  int64_t done = 0;
  if (at.sin_stride == 2 && at.cos_stride == 2) {
    done = sines < cosines ? sines : cosines;
    if (cos_to == sin_to + 1)
      store_pairs(r, sin_to, sine, cosine, done);
    else if (sin_to == cos_to + 1)
      store_pairs(r, cos_to, cosine, sine, done);
    else
      done = 0;
  }
  store_strided(r, sin_to + done * at.sin_stride, at.sin_stride, sine + done, sines - done);
  store_strided(r, cos_to + done * at.cos_stride, at.cos_stride, cosine + done, cosines - done);
}

template <typename T>
void zero_column(const RowsRequest& r) {
  for (int64_t i = 0; r.layout->zero_column >= 0 && i < r.count; ++i)
    static_cast<T*>(r.out)[i * r.layout->row_stride + r.layout->zero_column] = T(0);
}

// The destination of a whole block's pairs (sine, cosine), if all of them are wanted and adjacent;
// else null.
template <typename T>
POSENC_INLINE T* pairs_at(const RowsRequest& r, int64_t row, int64_t from) {
  const RowLayout& at = *r.layout;
  if (at.sin_stride != 2 || at.cos_stride != 2 || at.cos_offset != at.sin_offset + 1)
    return nullptr;
  if (from + kBlock > at.sin_count || from + kBlock > at.cos_count) return nullptr;
  return static_cast<T*>(r.out) + row * at.row_stride + at.sin_offset + 2 * from;
}

// Goes through the rows in blocks of frequencies: whole blocks, then the tail in the lanes that
// rows are padded to. `count`: how many frequencies of a block any column needs.
using BlockWriter = void (*)(const RowsRequest& r, int64_t row, int64_t from, int64_t count);
POSENC_INLINE void for_blocks(const RowsRequest& r, BlockWriter whole, BlockWriter lanes) {
  const int64_t entries =
      r.layout->sin_count > r.layout->cos_count ? r.layout->sin_count : r.layout->cos_count;
  for (int64_t row = 0; row < r.count; ++row) {
    int64_t from = 0;
    for (; from + kBlock <= r.padded; from += kBlock)
      whole(r, row, from, clipped(entries, from, kBlock));
    for (; from < r.padded; from += kLanes) lanes(r, row, from, clipped(entries, from, kLanes));
  }
}

// Nearest integer for |x| < 2^51, ties to even: adding 1.5 * 2^52 leaves no room for a fraction.
// Neither libm nor a rounding instruction, so that every set gives the same result.
POSENC_INLINE double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// a*b + c, fused if the instruction set can (-ffp-contract=off keeps the compiler from fusing
// anything else).
POSENC_INLINE double multiply_add(double a, double b, double c) {
  return kHasFma ? __builtin_fma(a, b, c) : a * b + c;
}

}  // namespace
}  // namespace posenc::kernels::sincos::POSENC_ISA
