#pragma once

// Parameters of a rotary embedding by its estimated frequencies, under the assumption that an
// exponent is 2i / dim.

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "identify/rotary/estimate.h"

namespace posenc::identification {

constexpr double kErrors = 4;          // estimates may be off by this many of their errors
constexpr double kFactorError = 1e-5;  // of a factor, relative, at least

/// A parameter and its relative error.
struct FittedValue {
  double value, error;
};

/// A line through the frequencies of a ramp.
struct FittedLine {
  double slope, start;
  int64_t points;
};

/// `v` and rounder values near it; none if it is not above 1, or too uncertain.
std::vector<double> rounded(const FittedValue& v);

class RotaryFit {
 public:
  RotaryFit(const RotaryEstimate& estimate, int64_t dim)
      : e_(estimate), n_(static_cast<int64_t>(estimate.f.size())), dim_(dim) {}

  int64_t dim() const { return dim_; }
  int64_t frequencies() const { return n_; }
  double f(int64_t i) const { return e_.f[static_cast<size_t>(i)]; }
  double error(int64_t i) const { return e_.error[static_cast<size_t>(i)]; }
  double relative_error(int64_t i) const { return f(i) > 0 ? error(i) / f(i) : INFINITY; }
  double exponent(int64_t i) const {
    return 2.0 * static_cast<double>(i) / static_cast<double>(dim_);
  }
  /// Frequency i without scaling.
  double plain(double base, int64_t i) const { return std::pow(base, -exponent(i)); }

  /// The base, estimated from the most accurate of the frequencies below `end`.
  FittedValue base(int64_t end) const;
  /// Bases estimated from the frequencies that a ramp does not change.
  std::vector<double> bases_before_ramp() const;
  /// The factor of `usual`, before it is raised to the power dim / (dim - 2).
  FittedValue growth(double usual) const;
  /// By how much the last frequencies are divided.
  std::vector<double> factors(double base) const;
  /// The line through the points (x(i), the fraction of frequency i that is not divided) whose
  /// fraction is neither 0 nor 1.
  FittedLine ramp(double base, double factor, const std::function<double(int64_t)>& x) const;

 private:
  bool fits_first(double base) const;

  const RotaryEstimate& e_;
  int64_t n_, dim_;
};

}  // namespace posenc::identification
