// The MPFR reference of the tests: the formula at 320 bits, rounded once.
#pragma once
#include <mpfr.h>

#include <cmath>
#include <memory>
#include <vector>

#include "kernels/sincos_types.h"

namespace posenc::testing::reference {
using posenc::kernels::sincos::Format;
using posenc::kernels::sincos::FrequencySpec;

class Real {
 public:
  explicit Real(int bits = 320) { mpfr_init2(v, bits); }
  ~Real() { mpfr_clear(v); }
  Real(const Real&) = delete;
  mpfr_t v;
};

inline double rounded(mpfr_t x, Format format) {
  if (format == Format::Float64) return mpfr_get_d(x, MPFR_RNDN);
  if (format == Format::Float32) return static_cast<double>(mpfr_get_flt(x, MPFR_RNDN));
  const bool brain = format == Format::BFloat16;
  Real r(brain ? 8 : 11);
  mpfr_set(r.v, x, MPFR_RNDN);
  if (!brain && std::fabs(mpfr_get_d(x, MPFR_RNDN)) < 0x1p-14) {  // subnormal: multiples of 2^-24
    Real wide;
    mpfr_mul_2si(wide.v, x, 24, MPFR_RNDN);
    mpfr_rint(wide.v, wide.v, MPFR_RNDN);
    mpfr_mul_2si(wide.v, wide.v, -24, MPFR_RNDN);
    return mpfr_get_d(wide.v, MPFR_RNDN);
  }
  return mpfr_get_d(r.v, MPFR_RNDN);
}

class Sinusoid {
 public:
  explicit Sinusoid(const FrequencySpec& s) : times_pi_(s.times_pi), sine_(200), cosine_(200) {
    for (int64_t k = 0; k < s.count; ++k) {
      w_.push_back(std::make_unique<Real>());
      mpfr_t& w = w_.back()->v;
      if (s.values_high != nullptr) {
        mpfr_set_d(w, s.values_high[k], MPFR_RNDN);
        if (s.values_low != nullptr) mpfr_add_d(w, w, s.values_low[k], MPFR_RNDN);
      } else if ((s.first + k * s.step) % s.denominator == 0) {  // exact if possible
        mpfr_set_d(w, s.base, MPFR_RNDN);
        mpfr_pow_si(w, w, -(s.first + k * s.step) / s.denominator, MPFR_RNDN);
      } else {  // exp(-(numerator/denominator) ln base)
        mpfr_set_d(w, s.base, MPFR_RNDN);
        mpfr_log(w, w, MPFR_RNDN);
        mpfr_mul_si(w, w, -(s.first + k * s.step), MPFR_RNDN);
        mpfr_div_si(w, w, s.denominator, MPFR_RNDN);
        mpfr_exp(w, w, MPFR_RNDN);
      }
      mpfr_mul_d(w, w, s.scale, MPFR_RNDN);
    }
  }
  void at(int64_t k, double position, Format format, double* sine, double* cosine) {
    mpfr_mul_d(angle_.v, w_[static_cast<size_t>(k)]->v, position, MPFR_RNDN);
    if (times_pi_) {  // exact zeros need sinpi and cospi (MPFR 4.2); a zero is +0
      mpfr_sinpi(sine_.v, angle_.v, MPFR_RNDN);
      mpfr_cospi(cosine_.v, angle_.v, MPFR_RNDN);
      if (mpfr_zero_p(sine_.v)) mpfr_set_zero(sine_.v, 1);
      if (mpfr_zero_p(cosine_.v)) mpfr_set_zero(cosine_.v, 1);
    } else {
      mpfr_sin_cos(sine_.v, cosine_.v, angle_.v, MPFR_RNDN);
    }
    *sine = rounded(sine_.v, format);
    *cosine = rounded(cosine_.v, format);
  }
  mpfr_t& frequency(int64_t k) { return w_[static_cast<size_t>(k)]->v; }

 private:
  bool times_pi_;
  std::vector<std::unique_ptr<Real>> w_;
  Real angle_, sine_, cosine_;
};

}  // namespace posenc::testing::reference
