// The bfloat16 arithmetic that rounds after each operation, in half of the instructions, for
// numbers of ordinary size. Included by rotary_lines.h, inside the instruction set's own namespace.
//
// A product p of two bfloat16 numbers has 16 significant bits. 65537 p has 32, of which float32
// keeps the first 24: all of 65536 p, and p itself to its first 8 bits, to nearest. A tie goes to
// even, since 65536 p adds an even number of units of the last place. So the rounded 65537 p minus
// 65536 p, each computed as x times a factor, is the product rounded to bfloat16.
//
// This holds if nothing overflows or is subnormal, and it loses the sign of zeros, so the members
// of the pairs and the factors have to be ordinary numbers.
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

POSENC_INLINE Floats quick_product(Floats x, const float* factor) {
  return minus_product(x * load<Floats>(factor + kFloats), x, load<Floats>(factor));
}

// to = x c + other s
POSENC_INLINE void rotate_quick(Pair x, Pair other, const float* c, const float* s, uint16_t* to) {
  constexpr int kOdd = 2 * kFloats;
  const Floats even = quick_product(x.even, c) + quick_product(other.even, s);
  const Floats odd = quick_product(x.odd, c + kOdd) + quick_product(other.odd, s + kOdd);
  write_high(to, rounded_up(bits_of(even)), rounded_up(bits_of(odd)));
}

// Both halves of a word: bits 14 and 30 are set if the number is in [2^-63, 2^64), whose exponents
// begin with 01 or 10.
POSENC_INLINE Words ordinary_bits(Words x) { return x ^ (x + x); }
POSENC_INLINE bool are_ordinary(Words bits) { return is_zero(~bits & 0x40004000); }

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
