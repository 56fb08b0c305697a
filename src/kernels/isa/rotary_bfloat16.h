// The bfloat16 arithmetic that rounds after each operation, in half of the instructions, for
// numbers of ordinary size. Included by rotary_lines.h, inside the instruction set's own namespace.
//
// A product p of two bfloat16 numbers has 16 significant bits. 65537 p has 32, of which float32
// keeps the first 24: all of 65536 p, and p itself to its first 8 bits, to nearest. A tie goes to
// even, since 65536 p adds an even number of units of the last place. So the difference of 65537 p,
// rounded, and 65536 p, both exact multiples of x by a factor, is the product as bfloat16 has it.
//
// That holds where nothing overflows or is subnormal, and a zero loses its sign: the members of the
// pairs and the factors have to be ordinary.
#pragma once
#include "kernels/isa/embed_kinds.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

// A vector's factors in this form: 65536 and 65537 times the even ones, then the odd ones.
constexpr int kQuickFloats = 4 * kFloats;
POSENC_INLINE void store_quick(float* to, Pair factor) {
  store(to, factor.even * 65536.0f);
  store(to + kFloats, factor.even * 65537.0f);
  store(to + 2 * kFloats, factor.odd * 65536.0f);
  store(to + 3 * kFloats, factor.odd * 65537.0f);
}

// a - b c, where the product is exact: fused or not, the same bits.
POSENC_INLINE Floats minus_product(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return _mm512_fnmadd_ps(b, c, a);
#elif defined(__AVX2__)
  return _mm256_fnmadd_ps(b, c, a);
#else
  return a - b * c;
#endif
}
POSENC_INLINE Floats quick_product(Floats x, const float* factor) {
  return minus_product(x * load<Floats>(factor + kFloats), x, load<Floats>(factor));
}

// Rounds to the high halves; what is below is left over.
POSENC_INLINE Words rounded_up(Floats x) {
  const Words u = bits_of(x);
#if defined(__AVX512F__)
  const __m512i v = reinterpret_cast<__m512i>(u);
  const __mmask16 odd = _mm512_test_epi32_mask(v, _mm512_set1_epi32(1 << 16));
  const __m512i up = _mm512_add_epi32(v, _mm512_set1_epi32(0x7fff));
  return reinterpret_cast<Words>(_mm512_mask_sub_epi32(up, odd, up, _mm512_set1_epi32(-1)));
#else
  return u + 0x7fff + (u >> 16 & 1);
#endif
}
POSENC_INLINE void write_high(uint16_t* to, Words even, Words odd) {
#if defined(__AVX512F__)
  store(to, _mm512_mask_blend_epi16(0xaaaaaaaa, reinterpret_cast<__m512i>(even >> 16),
                                    reinterpret_cast<__m512i>(odd)));
#elif defined(__AVX2__)
  store(to, _mm256_blend_epi16(reinterpret_cast<__m256i>(even >> 16),
                               reinterpret_cast<__m256i>(odd), 0xaa));
#else
  store(to, even >> 16 | (odd & 0xffff0000));
#endif
}

// to = x c + other s
POSENC_INLINE void rotate_quick(Pair x, Pair other, const float* c, const float* s, uint16_t* to) {
  constexpr int kOdd = 2 * kFloats;
  const Floats even = quick_product(x.even, c) + quick_product(other.even, s);
  const Floats odd = quick_product(x.odd, c + kOdd) + quick_product(other.odd, s + kOdd);
  write_high(to, rounded_up(even), rounded_up(odd));
}

// Both halves of a word: bits 14 and 30 are set if the number is in [2^-63, 2^64), whose exponents
// begin with 01 or 10.
POSENC_INLINE Words ordinary_bits(Words x) { return x ^ (x + x); }
POSENC_INLINE bool are_ordinary(Words bits) {
  const Words missing = ~bits & 0x40004000;
#if defined(__AVX512F__)
  const __m512i v = reinterpret_cast<__m512i>(missing);
  return _mm512_test_epi32_mask(v, v) == 0;
#elif defined(__AVX2__)
  const __m256i v = reinterpret_cast<__m256i>(missing);
  return _mm256_testz_si256(v, v) != 0;
#else
  return _mm_movemask_epi8(reinterpret_cast<__m128i>(reinterpret_cast<Ints>(missing) == 0)) ==
         0xffff;
#endif
}

// The factors of the same n channels: in [2^-40, 2^40] or zero, but not both, as the sum of two
// zeros needs their signs. Products are then above 2^-103, and what is left of their difference is
// still normal.
inline bool are_ordinary(const float* c, const float* s, int64_t n) {
  int32_t others = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float a = __builtin_fabsf(c[i]), b = __builtin_fabsf(s[i]);
    others |= !(a <= 0x1p40f) | !(b <= 0x1p40f) | ((a < 0x1p-40f) & (a != 0)) |
              ((b < 0x1p-40f) & (b != 0)) | ((a == 0) & (b == 0));
  }
  return others == 0;
}

}  // namespace
}  // namespace posenc::kernels::embed::POSENC_ISA
