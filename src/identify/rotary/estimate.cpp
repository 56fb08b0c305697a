#include "identify/rotary/estimate.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/epsilon.h"
#include "platform/number.h"

namespace posenc::identification {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;
constexpr double kClear = 0.5;  // radians: how well an angle must be known to count its turns
constexpr int kMostDigits = 8;

// Half a step of the dtype at 1, plus the error of ATen's cosine.
double resolution(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
    case at::kHalf: return epsilon_of(type) / 2;
    case at::kDouble: return 0x1p-50;
    default: return 0x1p-23;
  }
}

std::vector<double> row(const at::Tensor& table, int64_t position) {
  if (!table.defined()) return {};
  const at::Tensor r = table.select(0, position).to(at::kDouble).contiguous();
  return {r.const_data_ptr<double>(), r.const_data_ptr<double>() + r.numel()};
}

struct Angle {
  double value, error;
};

// The angle nearest to `expected` with this cosine and sine; NaN: not known.
Angle nearest_angle(double cos, double sin, double expected, double noise) {
  const auto turned = [&](double angle) {
    return angle + kTurn * std::round((expected - angle) / kTurn);
  };
  if (!std::isnan(cos) && !std::isnan(sin)) return {turned(std::atan2(sin, cos)), noise};
  const bool by_cos = !std::isnan(cos);
  const double x = std::clamp(by_cos ? cos : sin, -1.0, 1.0);
  const double one = by_cos ? std::acos(x) : std::asin(x);
  const double other = by_cos ? -one : std::numbers::pi - one;
  const double a = turned(one), b = turned(other);
  const double slope = std::max(std::sqrt(std::max(0.0, 1 - x * x)), std::sqrt(noise));
  return {std::abs(a - expected) <= std::abs(b - expected) ? a : b, noise / slope};
}

// The factor of a sine: sin(2f) / sin(f) = 2 cos(f), whatever the factor is.
double sine_amplitude(const at::Tensor& sin) {
  const double first = sin[1][0].item<double>(), second = sin[2][0].item<double>();
  const double cos = second / (2 * first);
  if (!(std::abs(cos) < 1.0)) return 1.0;
  const double amplitude = first / std::sin(std::acos(cos));
  return std::abs(amplitude - 1.0) < 4 * resolution(sin.scalar_type()) ? 1.0 : amplitude;
}

}  // namespace

RotaryEstimate estimate_frequencies(const RotaryView& view) {
  RotaryEstimate e;
  const auto n = static_cast<size_t>(view.frequencies());
  e.f.assign(n, 0.5);
  e.error.assign(n, kTurn);
  e.length = view.length();
  if (view.inv_freq.defined()) {
    e.f = row(view.inv_freq.unsqueeze(0), 0);
    const double step = resolution(view.inv_freq.scalar_type());
    for (size_t i = 0; i < n; ++i) e.error[i] = e.f[i] * step;
    return e;
  }
  e.amplitude = view.cos.defined() ? view.cos[0][0].item<double>() : sine_amplitude(view.sin);
  e.amplitude_error =
      e.amplitude * resolution(view.values().scalar_type()) * (view.cos.defined() ? 1.0 : 8.0);
  const double noise = 2 * resolution(view.values().scalar_type());
  for (int64_t p = 1, last = e.length - 1;;) {
    const auto cos = row(view.cos, p), sin = row(view.sin, p);
    const auto position = static_cast<double>(p);
    for (size_t i = 0; i < n; ++i) {
      // Frequencies are at most 1, so the first angle needs no turns.
      if (p > 1 && e.error[i] * position > kClear) continue;
      const Angle angle =
          nearest_angle(cos.empty() ? NAN : cos[i] / e.amplitude,
                        sin.empty() ? NAN : sin[i] / e.amplitude, e.f[i] * position, noise);
      const double error = angle.error / position;
      if (!(error < e.error[i])) continue;
      e.f[i] = std::abs(angle.value) / position;
      e.error[i] = error;
    }
    if (p == last) break;
    p = std::min(2 * p, last);
  }
  return e;
}

std::vector<double> rounded_values(double value, double error) {
  std::vector<double> result;
  for (int digits = 1; digits <= kMostDigits; ++digits) {
    const std::string text = fmt::format("{:.{}e}", value, digits - 1);
    const double rounded = platform::parse_number<double>(text).value();
    if (std::abs(rounded - value) > error * std::abs(value)) continue;
    if (std::find(result.begin(), result.end(), rounded) == result.end()) result.push_back(rounded);
  }
  result.push_back(value);
  return result;
}

std::string number_text(double value) {
  if (value == std::trunc(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

}  // namespace posenc::identification
