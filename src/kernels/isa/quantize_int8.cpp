// Floats to 8 bits and back, and the packing of a weight: int8.h has the arithmetic. Compiled once
// per instruction set.
#include "kernels/int8.h"
#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/dots.h"
#include "kernels/isa/tables.h"

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

// Of a row and 0; NaN, or infinite, if any is. Bits of positive numbers are in their order as
// signed integers, with NaN last, and so are those of negative ones as unsigned integers.
struct Range {
  float least, most;
};
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

struct Scale {
  float scale, unit;
  int32_t zero;
};
template <bool kHasZero>
POSENC_INLINE Scale scale_for(const Range& range) {
  const float largest = range.most > -range.least ? range.most : -range.least;
  const float half = 0.5f * range.most - 0.5f * range.least;
  if (!(half <= __FLT_MAX__)) return {0.0f, __builtin_nanf(""), 0};
  if (largest < kLeastLargest) return {0.0f, 0.0f, 0};
  if constexpr (!kHasZero) return {127.0f / largest, largest / 127.0f, 0};
  const float scale = 127.0f / half;
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

void quantize(const QuantizeRequest& p, int64_t begin, int64_t end) {
  const int64_t bytes = row_bytes(p.inner);
  for (int64_t row = begin; row < end; ++row) {
    const float* const x = p.x + row * p.x_stride;
    uint8_t* const to = p.bytes + row * bytes;
    const Scale by = scale_for<true>(range_of(x, p.inner));
    p.units[row] = by.unit;
    p.minus_zeros[row] = -kOffset - by.zero;
    if (by.scale == 0.0f) {
      memset(to, kOffset, static_cast<size_t>(bytes));
      continue;
    }
    by_sixteen(p.inner, [&](int64_t i, int64_t n) {
      const Levels q = levels(read(x + i, n), by, kOffset);
      if (n == kWide) return narrow_x(to + i, q.part);
      uint8_t sixteen[kWide];
      narrow_x(sixteen, q.part);
      memcpy(to + i, sixteen, static_cast<size_t>(bytes - i));
    });
  }
}

// Row n of a weight, as column n of a block.
void pack_row(const PackRequest& p, int64_t n) {
  int8_t* const to = p.bytes + n / kBlock * kBlock * row_bytes(p.inner) + n % kBlock * kStep;
  const bool is_row = n < p.outer;
  const float* const x = is_row ? p.weight + n * p.weight_stride : nullptr;
  const Scale by = is_row ? scale_for<false>(range_of(x, p.inner)) : Scale{0.0f, 0.0f, 0};
  int32_t sum = 0;
  by_sixteen(p.inner, [&](int64_t i, int64_t n_left) {
    int8_t sixteen[kWide] = {};
    if (by.scale != 0.0f) narrow_weight(sixteen, levels(read(x + i, n_left), by, 0).part);
    for (const int8_t one : sixteen) sum += one;
    for (int64_t k = 0; k < n_left; k += kStep) memcpy(to + (i + k) * kBlock, sixteen + k, kStep);
  });
  p.units[n] = by.unit;
  p.sums[n] = sum;
}

void pack(const PackRequest& p, int64_t begin, int64_t end) {
  for (int64_t n = begin * kBlock; n < end * kBlock; ++n) pack_row(p, n);
}

void unpack(const UnpackRequest& p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t n = p.rows[i];
    const int8_t* const from =
        p.bytes + n / kBlock * kBlock * row_bytes(p.inner) + n % kBlock * kStep;
    float* const out = p.out + i * p.inner;
    const float unit = p.units[n];
    by_sixteen(p.inner, [&](int64_t k, int64_t n_left) {
      int8_t sixteen[kWide] = {};
      for (int64_t j = 0; j < kWide; j += kStep)
        if (j < n_left) memcpy(sixteen + j, from + (k + j) * kBlock, kStep);
      float wide[kWide];
      for (int j = 0; j < kWide; ++j) wide[j] = static_cast<float>(sixteen[j]) * unit;
      memcpy(out + k, wide, sizeof(float) * static_cast<size_t>(n_left));
    });
  }
}

}  // namespace

const QuantizeKernels quantize_int8_kernels = {quantize, pack, unpack};

}  // namespace posenc::kernels::int8::POSENC_ISA
