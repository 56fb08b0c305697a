#include "identify/rotary/fit.h"

#include <algorithm>

namespace posenc::identification {
namespace {

constexpr double kBaseError = 1e-6;  // relative, at least
constexpr double kRampEdge = 0.02;   // nearer to the ends, rounding hides a ramp's slope

}  // namespace

std::vector<double> rounded(const FittedValue& v) {
  if (!(v.error < 0.5) || !std::isfinite(v.value) || !(v.value > 1.0)) return {};
  return rounded_values(v.value, v.error);
}

FittedValue RotaryFit::base(int64_t end) const {
  FittedValue best{0.0, INFINITY};
  for (int64_t i = 1; i < end; ++i) {
    if (!(f(i) > 0) || !(f(0) > 0)) continue;
    const double off = (relative_error(i) + relative_error(0)) / exponent(i);
    if (off >= best.error) continue;
    best = {std::exp(-std::log(f(i) / f(0)) / exponent(i)), off};
  }
  best.error = std::max(kErrors * best.error, kBaseError);
  return best;
}

// Whether the first frequencies, which a ramp does not change, are those of the base.
bool RotaryFit::fits_first(double base) const {
  for (int64_t i = 0; i < std::max<int64_t>(n_ / 8, 2); ++i) {
    if (std::abs(plain(base, i) - f(i)) > 2 * kErrors * error(i) + kBaseError) return false;
  }
  return true;
}

// A ramp may begin at any frequency: the usual place is tried first, then an earlier and a later
// one.
std::vector<double> RotaryFit::bases_before_ramp() const {
  std::vector<double> all;
  for (const int64_t end : {n_ / 4, n_ / 8, n_ / 2}) {
    for (const double b : rounded(base(std::max<int64_t>(end, 2)))) {
      if (fits_first(b) && std::find(all.begin(), all.end(), b) == all.end()) all.push_back(b);
    }
  }
  return all;
}

FittedValue RotaryFit::growth(double usual) const {
  const FittedValue grown = base(n_);
  const double power = static_cast<double>(dim_ - 2) / static_cast<double>(dim_);
  return {std::pow(grown.value / usual, power), grown.error};
}

std::vector<double> RotaryFit::factors(double base) const {
  int64_t last = n_ - 1;
  while (last > n_ / 2 && relative_error(last) > 0.05) --last;
  const FittedValue factor{plain(base, last) / f(last),
                           std::max(kErrors * relative_error(last), kFactorError * 10)};
  std::vector<double> all = rounded(factor);
  if (all.empty() || relative_error(last) > 1e-3) {
    for (const double usual : {8.0, 4.0, 32.0, 40.0, 16.0, 2.0, 64.0}) all.push_back(usual);
  }
  return all;
}

FittedLine RotaryFit::ramp(double base, double factor,
                           const std::function<double(int64_t)>& x) const {
  double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (int64_t i = 0; i < n_; ++i) {
    const double y = (f(i) / plain(base, i) - 1 / factor) / (1 - 1 / factor);
    if (!(y > kRampEdge && y < 1 - kRampEdge) || relative_error(i) > 1e-2) continue;
    const double at = x(i);
    s += 1, sx += at, sy += y, sxx += at * at, sxy += at * y;
  }
  const double slope = (s * sxy - sx * sy) / (s * sxx - sx * sx);
  return {slope, (sy - slope * sx) / s, static_cast<int64_t>(s)};
}

}  // namespace posenc::identification
