// The operations of ops_x86.h without intrinsics, for any gcc or clang and any processor.
#pragma once
#include "kernels/isa/half_emulation.h"
#include "kernels/isa/ops_portable.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

POSENC_INLINE float fma_of_lane(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
POSENC_INLINE double fma_of_lane(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <typename Vector>
POSENC_INLINE Vector fma_by_lanes(Vector a, Vector b, Vector c) {
  if constexpr (!kHasFma) return a * b + c;
  for (unsigned i = 0; i < sizeof(Vector) / sizeof(a[0]); ++i) c[i] = fma_of_lane(a[i], b[i], c[i]);
  return c;
}
POSENC_INLINE Floats fma(Floats a, Floats b, Floats c) { return fma_by_lanes(a, b, c); }
POSENC_INLINE Floats8 fma(Floats8 a, Floats8 b, Floats8 c) { return fma_by_lanes(a, b, c); }
POSENC_INLINE Doubles fma(Doubles a, Doubles b, Doubles c) { return fma_by_lanes(a, b, c); }
POSENC_INLINE Floats minus_product(Floats a, Floats b, Floats c) { return a - b * c; }

POSENC_INLINE void keep_in_register(Floats&) {}

POSENC_INLINE Floats8 square_root(Floats8 x) {
  for (int i = 0; i < 8; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}

POSENC_INLINE bool is_zero(Words x) {
  uint32_t all = 0;
  for (int i = 0; i < kFloats; ++i) all |= x[i];
  return all == 0;
}
POSENC_INLINE uint64_t greater(Floats a, Floats b) {
  uint64_t bits = 0;
  for (int i = 0; i < kFloats; ++i) bits |= uint64_t{a[i] > b[i]} << i;
  return bits;
}
POSENC_INLINE uint64_t signs(Longs x) {
  uint64_t bits = 0;
  for (int i = 0; i < kDoubles; ++i) bits |= static_cast<uint64_t>(x[i]) >> 63 << i;
  return bits;
}

POSENC_INLINE void transpose4(Floats4& a, Floats4& b, Floats4& c, Floats4& d) {
  const Floats4 ac0 = __builtin_shufflevector(a, c, 0, 4, 1, 5);
  const Floats4 ac2 = __builtin_shufflevector(a, c, 2, 6, 3, 7);
  const Floats4 bd0 = __builtin_shufflevector(b, d, 0, 4, 1, 5);
  const Floats4 bd2 = __builtin_shufflevector(b, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ac0, bd0, 0, 4, 1, 5);
  b = __builtin_shufflevector(ac0, bd0, 2, 6, 3, 7);
  c = __builtin_shufflevector(ac2, bd2, 0, 4, 1, 5);
  d = __builtin_shufflevector(ac2, bd2, 2, 6, 3, 7);
}
POSENC_INLINE Words low_words(Doubles a, Doubles b) {
  return __builtin_shufflevector(reinterpret_cast<Words>(a), reinterpret_cast<Words>(b), 0, 2, 4,
                                 6);
}
POSENC_INLINE Floats even_lanes(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}
POSENC_INLINE Floats odd_lanes(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7);
}
POSENC_INLINE void transpose(Floats (&x)[kFloats]) { transpose4(x[0], x[1], x[2], x[3]); }
POSENC_INLINE Floats swapped(Floats x) { return __builtin_shufflevector(x, x, 1, 0, 3, 2); }
POSENC_INLINE Doubles swapped(Doubles x) { return __builtin_shufflevector(x, x, 1, 0); }

typedef uint16_t Shorts __attribute__((vector_size(kBytes / 2)));
POSENC_INLINE Words widen(const uint16_t* from) {
  return __builtin_convertvector(load<Shorts>(from), Words);
}
POSENC_INLINE void narrow(uint16_t* to, Words x) { store(to, __builtin_convertvector(x, Shorts)); }

POSENC_INLINE Floats read_half(const uint16_t* from) { return decode_half(widen(from)); }
POSENC_INLINE void write_half(uint16_t* to, Floats x) { narrow(to, encode_half(x)); }
POSENC_INLINE Floats round_to_half(Floats x) { return decode_half(encode_half(x)); }

POSENC_INLINE void write_high(uint16_t* to, Words even, Words odd) {
  store(to, even >> 16 | (odd & 0xffff0000));
}

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
