// The four functions of the Ziv fallback: base^(-n/d), pi, sine and cosine.
#include <cmath>
#include <stdexcept>

#include "positions/sinusoid/exact/bigfloat.h"

namespace posenc::exact {

// Newton's method for 1/a from a float64 guess: each step doubles the number of correct bits.
Big reciprocal(const Big& a) {
  if (a.sign == 0) throw std::domain_error("reciprocal of zero");
  const Big mantissa = scaled(a, -a.exponent);  // in [1/2, 1)
  Big x = big_from(1.0 / to_double(mantissa), a.limbs);
  const Big two = big_from_integer(2, a.limbs);
  for (int bits = 50; bits < 64 * a.limbs; bits *= 2) x = mul(x, sub(two, mul(mantissa, x)));
  x = mul(x, sub(two, mul(mantissa, x)));
  return scaled(x, -a.exponent);
}

// y = base^(-n/d) is the root of y^d * base^n = 1. libm provides only the initial guess; the step
//   y <- y - y*g/d,  g = y^d * base^n - 1
// squares the error, and the last g bounds it whatever the guess was: y_true = y * (1+g)^(-1/d). So
// the result does not depend on libm beyond the stated error.
Big inverse_power(double base, int64_t numerator, int64_t denominator, int limbs) {
  if (numerator == 0 || base == 1.0) return big_from_integer(1, limbs);
  if (numerator < 0) return reciprocal(inverse_power(base, -numerator, denominator, limbs));
  const Big product = power(big_from(base, limbs), static_cast<uint64_t>(numerator));
  if (denominator == 1) return reciprocal(product);

  const double exponent =
      -(static_cast<double>(numerator) / static_cast<double>(denominator)) * std::log2(base);
  const double whole = std::floor(exponent);
  Big y = scaled(big_from(std::exp2(exponent - whole), limbs), static_cast<int64_t>(whole));
  const Big one = big_from_integer(1, limbs);
  for (int step = 0; step < 24; ++step) {
    const Big g = sub(mul(power(y, static_cast<uint64_t>(denominator)), product), one);
    const Big correction = div_small(mul(y, g), static_cast<uint64_t>(denominator));
    y = sub(y, correction);
    // The new relative error is about g^2/(2d): done once that is below the last bit.
    if (g.sign == 0 || g.exponent < -32 * int64_t{limbs} - 8) return y;
    if (step == 0 && g.exponent > -2) break;  // the guess was useless
  }
  throw std::domain_error("inverse_power: exponent too large for this base");
}

namespace {

// arctan(1/x) = sum (-1)^k / ((2k+1) x^(2k+1))
Big inverse_arctangent(uint64_t x, int limbs) {
  Big term = div_small(big_from_integer(1, limbs), x);
  Big sum = term;
  for (uint64_t k = 1; term.exponent > -64 * int64_t{limbs} - 8; ++k) {
    term = div_small(term, x * x);
    const Big part = div_small(term, 2 * k + 1);
    sum = k % 2 == 1 ? sub(sum, part) : add(sum, part);
  }
  return sum;
}

// sum (-1)^j z^j * first / (n+1)(n+2)...(n+2j), which both series share
Big alternating_series(const Big& first, const Big& square, uint64_t n) {
  Big term = first;
  Big sum = first;
  for (int j = 1; term.sign != 0 && term.exponent > sum.exponent - 64 * int64_t{sum.limbs} - 8;
       ++j, n += 2) {
    term = div_small(mul(term, square), (n + 1) * (n + 2));
    sum = j % 2 == 1 ? sub(sum, term) : add(sum, term);
  }
  return sum;
}

}  // namespace

Big pi(int limbs) {
  return sub(mul_small(inverse_arctangent(5, limbs), 16),
             mul_small(inverse_arctangent(239, limbs), 4));
}

Big sin_turns(const Big& turns, const Big& two_pi) {
  const Big angle = mul(turns, two_pi);
  return alternating_series(angle, mul(angle, angle), 1);
}

Big cos_turns(const Big& turns, const Big& two_pi) {
  const Big angle = mul(turns, two_pi);
  return alternating_series(big_from_integer(1, turns.limbs), mul(angle, angle), 0);
}

}  // namespace posenc::exact
