// Multi-limb binary floating point, for the Ziv fallback of the exact tables.
//
// Slow and small on purpose: it computes the frequencies once per table, and decides the few
// entries that float64 cannot. Every operation truncates, with a relative error below 2^(2-64n) for
// n limbs; the callers add these up. Not GMP or MPFR, to avoid the dependency.
#pragma once
#include <cstdint>

#include "kernels/sincos_types.h"

namespace posenc::exact {

using namespace kernels::sincos;  // the plain data types shared with the kernels

constexpr int kMaxLimbs = 64;  // 4096 bits: no entry of a real table ever needed more than 4 limbs

// value = sign * 0.m * 2^exponent, with m little-endian and its top bit set; sign 0 is zero.
struct Big {
  int limbs = 4;
  int sign = 0;
  int64_t exponent = 0;
  uint64_t m[kMaxLimbs];  // only the first `limbs` are meaningful

  Big() {}
  Big(const Big& other) { *this = other; }
  Big& operator=(const Big& other);
};

Big big_zero(int limbs);
Big big_from(double value, int limbs);
Big big_from_integer(int64_t value, int limbs);
Big resized(const Big& a, int limbs);  // truncates, or pads with zeros

Big mul(const Big& a, const Big& b);
Big add(const Big& a, const Big& b);
Big sub(const Big& a, const Big& b);
Big negated(Big a);
Big scaled(Big a, int64_t power_of_two);
Big mul_small(const Big& a, uint64_t factor);
Big div_small(const Big& a, uint64_t divisor);
Big reciprocal(const Big& a);
Big power(const Big& a, uint64_t exponent);

// a minus the nearest integer, in [-1/2, 1/2]; *low_bits gets that integer modulo 4 (two's
// complement).
Big centred_fraction(const Big& a, int* low_bits);

// Truncated towards zero to at most 53 bits; powers of two stay exact.
double to_double(const Big& a);

// Rounded to nearest even, `bits` of precision and no bit below 2^min_exponent (float32: 24, -149).
double round_to(const Big& a, int bits, int min_exponent);

// base^(-numerator/denominator), relative error below 2^(40-64n) for numerators and denominators
// below 2^31; base > 0 and finite.
Big inverse_power(double base, int64_t numerator, int64_t denominator, int limbs);

// pi by Machin's formula, relative error below 2^(16-64n).
Big pi(int limbs);

// sin and cos of 2*pi*turns for |turns| <= 1/8, relative error below 2^(24-64n); two_pi is
// 2*pi(limbs).
Big sin_turns(const Big& turns, const Big& two_pi);
Big cos_turns(const Big& turns, const Big& two_pi);

}  // namespace posenc::exact
