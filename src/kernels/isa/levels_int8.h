// Rows of floats to levels of 8 bits: int8.h has the arithmetic. Included by the kernel sources,
// inside the instruction set's own namespace.
#pragma once
#include "kernels/int8.h"
#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/dots.h"

namespace posenc::kernels::int8::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;
using namespace posenc::kernels::inference::POSENC_ISA;

static_assert(kStep * 4 == kWide && kBlock == kWide);

// The largest lane.
template <typename Vector>
POSENC_INLINE float largest(const Vector (&parts)[kParts]) {
  const auto larger = [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; };
  Vector all = parts[0];
  for (int i = 1; i < kParts; ++i) all = larger(parts[i], all);
  const auto of_four = [&](auto x) __attribute__((always_inline)) {
    x = larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1));
    x = larger(x, __builtin_shufflevector(x, x, 1, 0, 3, 2));
    return __builtin_bit_cast(float, x[0]);
  };
  const auto of_eight = [&](auto x) __attribute__((always_inline)) {
    return of_four(larger(__builtin_shufflevector(x, x, 0, 1, 2, 3),
                          __builtin_shufflevector(x, x, 4, 5, 6, 7)));
  };
  if constexpr (kFloats == 4) {
    return of_four(all);
  } else if constexpr (kFloats == 8) {
    return of_eight(all);
  } else {
    return of_eight(larger(__builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7),
                           __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15)));
  }
}

// What the levels of a row lie between.
struct Range {
  float least, most;
};
// Of a row and 0; NaN, or infinite, if any is. Bits of positive numbers are in their order as
// signed integers, with NaN last, and so are those of negative ones as unsigned integers.
POSENC_INLINE Range range_of(const float* x, int64_t n) {
  Ints most[kParts] = {};
  Words least[kParts];
  for (Words& part : least) part = Words{} + 0x80000000u;
  by_sixteen(n, [&](int64_t i, int64_t count) {
    const Wide w = read(x + i, count);
    for (int part = 0; part < kParts; ++part) {
      const Words bits = bits_of(w.part[part]);
      const Ints as_signed = reinterpret_cast<Ints>(bits);
      most[part] = as_signed > most[part] ? as_signed : most[part];
      least[part] = bits > least[part] ? bits : least[part];
    }
  });
  return {largest(least), largest(most)};
}
// The largest absolute value, in both directions.
POSENC_INLINE Range symmetric_range_of(const float* x, int64_t n) {
  Ints most[kParts] = {};
  by_sixteen(n, [&](int64_t i, int64_t count) {
    const Wide w = read(x + i, count);
    for (int part = 0; part < kParts; ++part) {
      const Ints magnitude = reinterpret_cast<Ints>(bits_of(w.part[part]) & 0x7fffffffu);
      most[part] = magnitude > most[part] ? magnitude : most[part];
    }
  });
  const float one = largest(most);
  return {-one, one};
}

struct Scale {
  float scale, unit;
  int32_t zero;
};
// kHasZero: the row of an input; otherwise its levels are symmetric.
template <bool kHasZero>
POSENC_INLINE Scale scale_for(const float* x, int64_t n) {
  const Range range = kHasZero ? range_of(x, n) : symmetric_range_of(x, n);
  const float largest = range.most > -range.least ? range.most : -range.least;
  const float half = 0.5f * range.most - 0.5f * range.least;
  if (!(half <= __FLT_MAX__)) return {0.0f, __builtin_nanf(""), 0};
  if (largest < kLeastLargest) return {0.0f, 0.0f, 0};
  const float scale = 127.0f / half;
  if constexpr (!kHasZero) return {scale, half / 127.0f, 0};
  return {scale, half / 127.0f, nearest(broadcast(-range.least * scale))[0] - 127};
}

// The q of sixteen numbers, plus `more`.
struct Levels {
  Ints part[kParts];
};
POSENC_INLINE Levels levels(const Wide& x, const Scale& by, int32_t more) {
  Levels q;
  for (int part = 0; part < kParts; ++part)
    q.part[part] = nearest(x.part[part] * broadcast(by.scale)) + (by.zero + more);
  return q;
}

// The levels of a row in row_bytes(inner) bytes, plus kOffset.
template <bool kHasZero>
POSENC_INLINE Scale quantize_row(const float* x, int64_t inner, uint8_t* to) {
  const int64_t bytes = row_bytes(inner);
  const Scale by = scale_for<kHasZero>(x, inner);
  if (by.scale == 0.0f) {
    memset(to, kOffset, static_cast<size_t>(bytes));
    return by;
  }
  by_sixteen(inner, [&](int64_t i, int64_t n) {
    const Levels q = levels(read(x + i, n), by, kOffset);
    if (n == kWide) return narrow_x(to + i, q.part);
    uint8_t sixteen[kWide];
    narrow_x(sixteen, q.part);
    memcpy(to + i, sixteen, static_cast<size_t>(bytes - i));
  });
  return by;
}

// The unit of a row whose levels are symmetric, and their sum.
struct PackedRow {
  float unit;
  int32_t sum;
};
// Such levels, in steps of kStep that are `stride` bytes apart: a column of a packed weight.
POSENC_INLINE PackedRow pack_row(const float* x, int64_t inner, int64_t stride, int8_t* to) {
  const Scale by = scale_for<false>(x, inner);
  Ints sums = {};
  by_sixteen(inner, [&](int64_t i, int64_t n) {
    int8_t sixteen[kWide] = {};
    if (by.scale != 0.0f) {
      const Levels q = levels(read(x + i, n), by, 0);
      for (const Ints& part : q.part) sums += part;
      narrow_weight(sixteen, q.part);
    }
    for (int64_t k = 0; k < n; k += kStep)
      memcpy(to + (i + k) / kStep * stride, sixteen + k, kStep);
  });
  PackedRow row = {by.unit, 0};
  for (int i = 0; i < kFloats; ++i) row.sum += sums[i];
  return row;
}

}  // namespace
}  // namespace posenc::kernels::int8::POSENC_ISA
