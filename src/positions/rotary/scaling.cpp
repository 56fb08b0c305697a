#include "positions/rotary/scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace posenc {
namespace {

// The frequency, as a real index, that rotates `rotations` times in the length of pretraining.
double frequency_of(double rotations, const rotary::Yarn& s, int64_t dim, double base) {
  const double wavelength = rotations * 2 * std::numbers::pi;
  return (static_cast<double>(dim) * std::log(s.original_max_position / wavelength)) /
         (2 * std::log(base));
}

double mscale(double factor, double scale) {
  return factor <= 1.0 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

}  // namespace

double ntk_base(double base, double scale, int64_t dim) {
  const auto channels = static_cast<double>(dim);
  return base * std::pow(scale, channels / (channels - 2));
}

std::vector<double> ntk_bases(const RotaryOptions& options, const std::vector<double>& scales) {
  const std::vector<int64_t> dims = options.plane_dims();
  std::vector<double> bases;
  for (size_t i = 0; i < dims.size(); ++i) {
    bases.push_back(ntk_base(options.base(), scales[i], dims[i]));
  }
  return bases;
}

YarnRamp yarn_ramp(const rotary::Yarn& s, int64_t dim, double base) {
  double low = frequency_of(s.beta_fast, s, dim, base);
  double high = frequency_of(s.beta_slow, s, dim, base);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  return {low, high};
}

double yarn_attention_factor(const rotary::Yarn& s) {
  if (s.attention_factor) return *s.attention_factor;
  if (s.mscale != 0.0 && s.mscale_all_dim != 0.0) {
    return mscale(s.factor, s.mscale) / mscale(s.factor, s.mscale_all_dim);
  }
  return mscale(s.factor, 1.0);
}

}  // namespace posenc
