// exp and tanh, lane-wise. Included by the kernel sources, inside the instruction set's own
// namespace.
#pragma once
#include "kernels/isa/float_lanes.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// c[0] x^(n-1) + c[1] x^(n-2) + ... + c[n-1]
template <int n>
POSENC_INLINE Floats polynomial(Floats x, const float (&c)[n]) {
  Floats y = broadcast(c[0]);
#pragma GCC unroll 8
  for (int i = 1; i < n; ++i) y = fma(y, x, broadcast(c[i]));
  return y;
}

// exp(x) within 2 ulp for x <= 88, 0 below -87.3 (and for -inf), exp(88) above 88; NaN for NaN.
// With x = n log 2 + r and |r| <= log(2) / 2, exp(r) is its Taylor polynomial of degree 7, whose
// error is below 5e-9.
POSENC_INLINE Floats exponential(Floats x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  constexpr float kLog2e = 1.44269504088896341f, kLog2High = 0.693359375f,
                  kLog2Low = -2.12194440e-4f;
  const Ints tiny = x < broadcast(-87.3f);
  x = minimum(broadcast(88.0f), x);
  const Floats shifted = fma(x, broadcast(kLog2e), broadcast(kRound));
  const Floats n = shifted - broadcast(kRound);
  const Floats r = fma(n, broadcast(-kLog2Low), fma(n, broadcast(-kLog2High), x));
  const Floats y =
      polynomial(r, {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f});
  return floats_of(bits_of(times_power(y, n)) & ~reinterpret_cast<Words>(tiny));
}

// tanh(x) as a rational function (Eigen's), within 7 ulp, and at most 1; NaN for NaN.
POSENC_INLINE Floats hyperbolic_tangent(Floats x) {
  constexpr float kLimit = 7.90531110763549805f;
  x = minimum(broadcast(kLimit), maximum(broadcast(-kLimit), x));
  const Floats x2 = x * x;
  const Floats p =
      polynomial(x2, {-2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f,
                      5.12229709037114e-08f, 1.48572235717979e-05f, 6.37261928875436e-04f,
                      4.89352455891786e-03f});
  const Floats q = polynomial(x2, {1.19825839466702e-06f, 1.18534705686654e-04f,
                                   2.26843463243900e-03f, 4.89352518554385e-03f});
  return x * p / q;
}

// softcap * tanh(x / softcap)
POSENC_INLINE Floats soft_capped(Floats x, float softcap) {
  return broadcast(softcap) * hyperbolic_tangent(x / broadcast(softcap));
}

}  // namespace
}  // namespace posenc::kernels::inference::POSENC_ISA
