#include "positions/sinusoid/exact/bigfloat.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace posenc::exact {
namespace {

int leading_zeros(uint64_t x) { return x == 0 ? 64 : __builtin_clzll(x); }

// Shifts m left until its top bit is set, and lowers the exponent accordingly.
void normalise(Big& a) {
  int top = a.limbs - 1;
  while (top >= 0 && a.m[top] == 0) --top;
  if (top < 0) {
    a.sign = 0;
    return;
  }
  const int words = a.limbs - 1 - top;
  const int bits = leading_zeros(a.m[top]);
  for (int i = a.limbs - 1; i >= 0; --i) {
    const uint64_t high = i >= words ? a.m[i - words] : 0;
    const uint64_t low = i >= words + 1 ? a.m[i - words - 1] : 0;
    a.m[i] = bits == 0 ? high : (high << bits | low >> (64 - bits));
  }
  a.exponent -= 64 * int64_t{words} + bits;
}

// out = m >> shift; the bits shifted out are lost.
void shifted_right(const Big& a, int64_t shift, uint64_t* out) {
  const int64_t words = shift / 64;
  const int bits = static_cast<int>(shift % 64);
  for (int64_t i = 0; i < a.limbs; ++i) {
    const uint64_t low = i + words < a.limbs ? a.m[i + words] : 0;
    const uint64_t high = i + words + 1 < a.limbs ? a.m[i + words + 1] : 0;
    out[i] = bits == 0 ? low : (low >> bits | high << (64 - bits));
  }
}

int compare_magnitude(const Big& a, const Big& b) {
  if (a.exponent != b.exponent) return a.exponent < b.exponent ? -1 : 1;
  for (int i = a.limbs - 1; i >= 0; --i) {
    if (a.m[i] != b.m[i]) return a.m[i] < b.m[i] ? -1 : 1;
  }
  return 0;
}

Big from_bits(uint64_t magnitude, int sign, int64_t exponent, int limbs) {
  Big a = big_zero(limbs);
  if (magnitude == 0) return a;
  a.sign = sign;
  a.m[limbs - 1] = magnitude;
  a.exponent = exponent;
  normalise(a);
  return a;
}

}  // namespace

Big& Big::operator=(const Big& other) {
  limbs = other.limbs;
  sign = other.sign;
  exponent = other.exponent;
  std::memcpy(m, other.m, sizeof(uint64_t) * static_cast<size_t>(other.limbs));
  return *this;
}

Big big_zero(int limbs) {
  Big a;
  a.limbs = limbs;
  std::memset(a.m, 0, sizeof(uint64_t) * static_cast<size_t>(limbs));
  return a;
}

Big big_from_integer(int64_t value, int limbs) {
  const uint64_t magnitude =
      value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  return from_bits(magnitude, value < 0 ? -1 : 1, 64, limbs);
}

Big big_from(double value, int limbs) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  return from_bits(static_cast<uint64_t>(std::ldexp(fraction, 53)), value < 0 ? -1 : 1,
                   int64_t{exponent} + 11, limbs);
}

Big resized(const Big& a, int limbs) {
  Big r = big_zero(limbs);
  r.sign = a.sign;
  r.exponent = a.exponent;
  for (int i = 1; i <= limbs && i <= a.limbs; ++i) r.m[limbs - i] = a.m[a.limbs - i];
  return r;
}

Big negated(Big a) {
  a.sign = -a.sign;
  return a;
}

Big scaled(Big a, int64_t power_of_two) {
  a.exponent += power_of_two;
  return a;
}

Big mul(const Big& a, const Big& b) {
  const int n = a.limbs;
  Big r = big_zero(n);
  if (a.sign == 0 || b.sign == 0) return r;
  uint64_t product[2 * kMaxLimbs];
  std::memset(product, 0, sizeof(uint64_t) * static_cast<size_t>(2 * n));
  for (int i = 0; i < n; ++i) {
    if (a.m[i] == 0) continue;
    uint64_t carry = 0;
    for (int j = 0; j < n; ++j) {
      const UWide t = static_cast<UWide>(a.m[i]) * b.m[j] + product[i + j] + carry;
      product[i + j] = static_cast<uint64_t>(t);
      carry = static_cast<uint64_t>(t >> 64);
    }
    product[i + n] = carry;
  }
  // Both factors are in [1/2, 1): the product needs one bit of normalisation at most.
  const int shift = product[2 * n - 1] >> 63 ? 0 : 1;
  for (int i = 0; i < n; ++i)
    r.m[i] = shift ? (product[n + i] << 1 | product[n + i - 1] >> 63) : product[n + i];
  r.sign = a.sign * b.sign;
  r.exponent = a.exponent + b.exponent - shift;
  return r;
}

Big add(const Big& x, const Big& y) {
  if (x.sign == 0) return y;
  if (y.sign == 0) return x;
  const bool swap = compare_magnitude(x, y) < 0;
  const Big& a = swap ? y : x;
  const Big& b = swap ? x : y;
  const int64_t shift = a.exponent - b.exponent;
  if (shift >= 64 * int64_t{a.limbs}) return a;
  uint64_t small[kMaxLimbs];
  shifted_right(b, shift, small);
  Big r = a;
  uint64_t carry = 0;
  if (a.sign == b.sign) {
    for (int i = 0; i < a.limbs; ++i) {
      const UWide t = static_cast<UWide>(a.m[i]) + small[i] + carry;
      r.m[i] = static_cast<uint64_t>(t);
      carry = static_cast<uint64_t>(t >> 64);
    }
    if (carry != 0) {
      for (int i = 0; i < a.limbs; ++i)
        r.m[i] = r.m[i] >> 1 | (i + 1 < a.limbs ? r.m[i + 1] : uint64_t{1}) << 63;
      r.exponent += 1;
    }
  } else {
    for (int i = 0; i < a.limbs; ++i) {
      const UWide t = static_cast<UWide>(a.m[i]) - small[i] - carry;
      r.m[i] = static_cast<uint64_t>(t);
      carry = static_cast<uint64_t>(t >> 64) & 1;
    }
    normalise(r);
  }
  return r;
}

Big sub(const Big& a, const Big& b) { return add(a, negated(b)); }

Big mul_small(const Big& a, uint64_t factor) { return mul(a, from_bits(factor, 1, 64, a.limbs)); }

Big div_small(const Big& a, uint64_t divisor) {
  // The quotient starts with about as many zero bits as the divisor has bits, so one limb more is
  // computed than is kept.
  Big r = a;
  if (a.sign == 0) return r;
  UWide rest = 0;
  for (int i = a.limbs - 1; i >= 0; --i) {
    const UWide t = rest << 64 | a.m[i];
    r.m[i] = static_cast<uint64_t>(t / divisor);
    rest = t % divisor;
  }
  const uint64_t next = static_cast<uint64_t>((rest << 64) / divisor);
  const int shift = leading_zeros(r.m[a.limbs - 1]);
  normalise(r);
  // Normalising shifted `shift` bits in at the low end (at most 64, for a divisor below 2^64); they
  // are the top bits of `next`.
  if (shift > 0) r.m[0] |= shift == 64 ? next : next >> (64 - shift);
  return r;
}

Big power(const Big& a, uint64_t exponent) {
  Big result = big_from_integer(1, a.limbs);
  Big square = a;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = mul(result, square);
    if (exponent > 1) square = mul(square, square);
  }
  return result;
}

Big centred_fraction(const Big& a, int* low_bits) {
  *low_bits = 0;
  if (a.sign == 0 || a.exponent < -1) return a;  // |a| < 1/4
  Big fraction = a;
  int integer = 0;
  const int64_t whole = a.exponent;  // the number of bits before the binary point
  if (whole > 64 * int64_t{a.limbs})
    throw std::logic_error("centred_fraction: not enough limbs for the argument");
  for (int64_t bit = 0; bit < whole; ++bit) {
    const int64_t at =
        64 * int64_t{a.limbs} - 1 - bit;  // the weight of this bit is 2^(whole - 1 - bit)
    const uint64_t mask = uint64_t{1} << (at % 64);
    if ((fraction.m[at / 64] & mask) != 0 && whole - 1 - bit < 2) integer |= 1 << (whole - 1 - bit);
    fraction.m[at / 64] &= ~mask;
  }
  normalise(fraction);
  if (fraction.sign != 0 && fraction.exponent == 0) {  // at least 1/2: round up
    fraction = sub(fraction, from_bits(1, fraction.sign, 64, a.limbs));
    integer += 1;
  }
  *low_bits = (a.sign < 0 ? -integer : integer) & 3;
  return fraction;
}

double to_double(const Big& a) {
  if (a.sign == 0 || a.exponent < -1200) return 0.0;
  const double top = static_cast<double>(a.m[a.limbs - 1] >> 11);
  return std::ldexp(a.sign * top, static_cast<int>(a.exponent > 2000 ? 2000 : a.exponent) - 53);
}

double round_to(const Big& a, int bits, int min_exponent) {
  if (a.sign == 0) return 0.0;
  int64_t keep = bits;  // fewer bits for subnormal results
  if (a.exponent - keep < min_exponent) keep = a.exponent - min_exponent;
  if (keep < 0) return a.sign < 0 ? -0.0 : 0.0;  // below half of the smallest value
  const uint64_t top = a.m[a.limbs - 1];
  uint64_t kept = keep == 0 ? 0 : top >> (64 - keep);
  const bool half = (top >> (63 - keep)) & 1;
  bool rest = (top << keep << 1) != 0;
  for (int i = 0; i < a.limbs - 1; ++i) rest = rest || a.m[i] != 0;
  if (half && (rest || (kept & 1))) ++kept;
  return std::ldexp(a.sign * static_cast<double>(kept), static_cast<int>(a.exponent - keep));
}

}  // namespace posenc::exact
