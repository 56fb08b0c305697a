// The frequencies and the Ziv fallback share the stored bits.
#include "positions/sinusoid/exact/frequencies.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace posenc::exact {
namespace {

constexpr int kStoredLimbs = 4;
constexpr int kArrays = kPieces + 6;

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("[exact frequencies] " + what);
}

void check(const FrequencySpec& s) {
  constexpr int64_t limit = int64_t{1} << 31;
  if (s.count < 1 || s.count > (int64_t{1} << 20))
    refuse("count must be in [1, 2^20], got " + std::to_string(s.count));
  if (!std::isfinite(s.scale)) refuse("scale must be finite, got " + std::to_string(s.scale));
  if (s.values_high != nullptr) {
    for (int64_t k = 0; k < s.count; ++k) {
      if (!std::isfinite(s.values_high[k]) ||
          (s.values_low != nullptr && !std::isfinite(s.values_low[k])))
        refuse("frequency " + std::to_string(k) + " is not finite");
    }
    return;
  }
  if (!std::isfinite(s.base) || s.base <= 0.0)
    refuse("base must be positive and finite, got " + std::to_string(s.base));
  if (s.denominator < 1 || s.denominator >= limit)
    refuse("denominator must be in [1, 2^31), got " + std::to_string(s.denominator));
  if (std::llabs(s.first) >= limit || std::llabs(s.step) >= limit ||
      std::llabs(s.first + s.step * (s.count - 1)) >= limit)
    refuse("exponent numerators must be below 2^31 in magnitude");
}

// 2 pi and 1/(2 pi), computed once per precision: 4, 8, 16, 32 and 64 limbs.
struct Constants {
  Big two_pi;
  Big per_turn;
};
template <int limbs>
const Constants& constants_of() {
  static const Constants made = [] {
    Constants c;
    c.two_pi = scaled(pi(limbs), 1);
    c.per_turn = reciprocal(c.two_pi);
    return c;
  }();
  return made;
}
const Constants& constants(int limbs) {
  switch (limbs) {
    case 4: return constants_of<4>();
    case 8: return constants_of<8>();
    case 16: return constants_of<16>();
    case 32: return constants_of<32>();
    default: return constants_of<64>();
  }
}

int ldexp_range(int64_t exponent) {
  return static_cast<int>(exponent < -4000 ? -4000 : exponent > 4000 ? 4000 : exponent);
}

// From the frequency w, or w/pi with times_pi, to turns per position.
Big to_turns(const Big& w, const FrequencySpec& s) {
  const Big scaled_w = mul(w, big_from(s.scale, w.limbs));
  return s.times_pi ? scaled(scaled_w, -1) : mul(scaled_w, constants(w.limbs).per_turn);
}

Big power_of(const FrequencySpec& s, int64_t numerator, int limbs) {
  int64_t a = std::llabs(numerator), b = s.denominator;
  while (a != 0) {
    const int64_t rest = b % a;
    b = a;
    a = rest;
  }
  return inverse_power(s.base, numerator / b, s.denominator / b, limbs);
}

}  // namespace

Frequencies::Frequencies(const FrequencySpec& spec) : spec_(spec) {
  check(spec);
  view_.count = spec.count;
  view_.padded = (spec.count + kLanes - 1) / kLanes * kLanes;
  arrays_.assign(static_cast<size_t>(kArrays * view_.padded), 0.0);
  double* next = arrays_.data();
  const auto take = [&] { return (next += view_.padded) - view_.padded; };
  for (auto& piece : view_.piece) piece = take();
  view_.rest = take();
  view_.reach = take();
  view_.turns_high = take();
  view_.turns_low = take();
  view_.turns_reach = take();
  view_.part_guard = take();

  stored_.resize(static_cast<size_t>(spec.count));
  if (spec.values_high != nullptr) {
    for (int64_t k = 0; k < spec.count; ++k) fill(k, turns(k, kStoredLimbs));
    return;
  }
  // One root, then one multiplication per frequency: k steps add k * 2^-215 to the relative error,
  // less than 2^-190 for 2^20 frequencies.
  Big t = turns(0, kStoredLimbs);
  const Big ratio = power_of(spec, spec.step, kStoredLimbs);
  for (int64_t k = 0; k < spec.count; ++k) {
    fill(k, t);
    t = mul(t, ratio);
  }
}

Big Frequencies::turns(int64_t k, int limbs) const {
  if (spec_.values_high == nullptr)
    return to_turns(power_of(spec_, spec_.first + k * spec_.step, limbs), spec_);
  Big w = big_from(spec_.values_high[k], limbs);
  // Two doubles may be so far apart that no fixed length holds their sum: the sum is then rounded
  // to `limbs`, like everything else.
  if (spec_.values_low != nullptr) w = add(w, big_from(spec_.values_low[k], limbs));
  return to_turns(w, spec_);
}

Big Frequencies::stored_turns(int64_t k) const {
  const Stored& s = stored_[static_cast<size_t>(k)];
  Big t = big_zero(kStoredLimbs);
  for (int i = 0; i < kStoredLimbs; ++i) t.m[i] = s.m[i];
  t.exponent = s.exponent;
  t.sign = s.sign;
  return t;
}

// With times_pi and a power of two as base, half turns are doubles: products with a position are
// exact, and so are the zeros of the sine.
bool Frequencies::turns_are_exact(int64_t k) const {
  if (!spec_.times_pi) return false;
  if (spec_.values_high != nullptr) return spec_.values_low == nullptr;
  int exponent = 0;
  const int64_t numerator = spec_.first + k * spec_.step;
  return numerator == 0 || (std::frexp(spec_.base, &exponent) == 0.5 &&
                            (exponent - 1) * numerator % spec_.denominator == 0);
}

void Frequencies::fill(int64_t k, const Big& t) {
  Stored& s = stored_[static_cast<size_t>(k)];
  for (int i = 0; i < kStoredLimbs; ++i) s.m[i] = t.m[i];
  s.exponent = t.exponent;
  s.sign = t.sign;
  const auto at = [k](const double* array) -> double& { return const_cast<double*>(array)[k]; };
  // to_double truncates to 53 bits; the next 75 are the low part.
  at(view_.turns_high) = to_double(t);
  at(view_.turns_low) =
      t.sign == 0
          ? 0.0
          : std::ldexp(
                t.sign * static_cast<double>(static_cast<UWide>(t.m[3] & 0x7ff) << 64 | t.m[2]),
                ldexp_range(t.exponent - 128));
  int ignored = 0;
  const Big fraction = centred_fraction(t, &ignored);
  constexpr double above_two_pi = 6.2831853071795872 * (1 + 0x1p-40);
  at(view_.turns_reach) = std::fabs(to_double(t)) * above_two_pi;
  at(view_.reach) = std::fabs(to_double(fraction)) * above_two_pi;
  if (t.sign != 0 && t.exponent > 40)
    at(view_.turns_low) = NAN;  // beyond the bound of the error-free product
  if (t.sign != 0 && t.exponent >= 0) at(view_.part_guard) = NAN;
  // The pieces have the weights 2^-21, 2^-41 ... 2^-101 times 2^frame. The frame is 0, so that
  // whole turns can be dropped exactly from a product; only a fraction so small that no position
  // below 2^31 makes it a whole turn has a frame of its own, to keep its relative accuracy.
  const int64_t frame = fraction.sign == 0 || fraction.exponent > -40 ? 0 : fraction.exponent + 1;
  Wide fixed = 0;   // fraction * 2^(128 - frame), |.| < 2^127
  Wide beyond = 0;  // its next 64 bits
  if (fraction.sign != 0) {
    const int shift =
        static_cast<int>(frame - fraction.exponent);  // 0 to 40; 1 in a frame of its own
    const UWide top = static_cast<UWide>(fraction.m[3]) << 64 | fraction.m[2];
    const UWide next = static_cast<UWide>(fraction.m[2]) << 64 | fraction.m[1];
    fixed = static_cast<Wide>(std::min(
        top >> shift, ~static_cast<UWide>(0) >> 1));  // 1/2 itself becomes the number just below
    beyond = static_cast<uint64_t>(next >> shift);
    if (fraction.sign < 0) fixed = -fixed, beyond = -beyond;
  }
  double rest = 0.0;
  for (int j = 0; j < kPieces - 1; ++j) {
    const int below = 107 - 20 * j;  // bits below this piece's weight
    const Wide rounded = (fixed + (static_cast<Wide>(1) << (below - 1))) >> below;
    at(view_.piece[j]) = std::ldexp(static_cast<double>(static_cast<int64_t>(rounded)),
                                    ldexp_range(frame - 128 + below));
    fixed -= rounded * (static_cast<Wide>(1) << below);
    if (j == 1) rest = std::ldexp(static_cast<double>(fixed), ldexp_range(frame - 128));
  }
  // 190 bits of w leave at least 110 of its fraction, unless w is nearly a whole number of turns:
  // that case is left to the Ziv fallback.
  const bool cancelled = fraction.sign == 0 ? t.sign != 0 : fraction.exponent < t.exponent - 80;
  const double guard = cancelled && !turns_are_exact(k) ? NAN : 0.0;
  view_.guarded = view_.guarded || guard != 0.0 || (t.sign != 0 && t.exponent > 40);
  at(view_.rest) = rest + guard;
  at(view_.piece[kPieces - 1]) =
      std::ldexp(static_cast<double>(fixed * (static_cast<Wide>(1) << 64) + beyond),
                 ldexp_range(frame - 192)) +
      guard;
}

namespace {

struct Rounding {
  int bits;
  int min_exponent;
};
Rounding rounding_of(Format format) {
  switch (format) {
    case Format::Float32: return {24, -149};
    case Format::BFloat16: return {8, -133};
    case Format::Float16: return {11, -24};
    default: return {53, -1074};
  }
}

}  // namespace

double Frequencies::entry(int64_t k, bool cosine, double position, Format format) const {
  if (!std::isfinite(position)) return NAN;
  if (position == 0.0) return cosine ? 1.0 : 0.0;
  decided_.fetch_add(1, std::memory_order_relaxed);
  const Rounding to = rounding_of(format);
  const bool exact = turns_are_exact(k);
  for (int limbs = first_limbs;; limbs *= 2) {
    const bool last = limbs >= kMaxLimbs;
    const Big t = limbs == kStoredLimbs ? stored_turns(k) : turns(k, limbs);
    if (t.sign == 0) return cosine ? 1.0 : 0.0;
    if (limbs > kStoredLimbs) decided_beyond_stored_.fetch_add(1, std::memory_order_relaxed);
    const Big product = mul(t, big_from(position, limbs));
    if (product.exponent > 64 * int64_t{limbs} - 128 && !last)
      continue;  // no bits are left after the binary point
    int quarter = 0;
    const Big fraction = scaled(centred_fraction(scaled(product, 2), &quarter), -2);
    const bool use_cosine = cosine != (quarter % 2 == 1);
    const bool minus = cosine ? (quarter == 1 || quarter == 2) : (quarter == 2 || quarter == 3);
    Big value = use_cosine ? cos_turns(fraction, constants(limbs).two_pi)
                           : sin_turns(fraction, constants(limbs).two_pi);
    if (minus) value.sign = -value.sign;
    if (exact && value.sign == 0) return 0.0;

    // Errors: the product's relative one (2^-190 stored, 2^(66-64n) recomputed) becomes absolute in
    // turns, times 2 pi; the series' own is relative to its value.
    const int64_t of_product =
        product.exponent + (limbs == kStoredLimbs ? -190 : 66 - 64 * int64_t{limbs}) + 3;
    const int64_t of_series = value.exponent + 24 - 64 * int64_t{limbs};
    const int64_t worst = (exact || of_series > of_product ? of_series : of_product) + 1;
    const bool vanishes = value.sign == 0 || value.exponent <= worst;
    if (vanishes && last) return 0.0;  // closer to zero than 2^-3800: treated as zero
    if (vanishes) continue;
    const Big error = scaled(big_from_integer(1, limbs), worst);
    const double low = round_to(sub(value, error), to.bits, to.min_exponent);
    const double high = round_to(add(value, error), to.bits, to.min_exponent);
    if (low == high || last) return high;
  }
}

}  // namespace posenc::exact
