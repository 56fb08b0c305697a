#include "catalogue/identify/estimate.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "positions/sinusoid/columns.h"
#include "positions/sinusoid/frequency.h"

namespace posenc::identification {
namespace {

constexpr double kTrainedTolerance = 0.1;  // rows of a grid this close were equal before training
constexpr double kLongestStep = 2000;      // allows diffusion timesteps scaled by 1000

double wrapped(double angle) { return std::remainder(angle, 2 * std::numbers::pi); }

// The number that a person would have written, if `value` is within `error` of it.
double snapped(double value, double error) {
  if (std::abs(value - std::round(value)) < error) return std::round(value);
  for (const double parts : {1024.0, 1000.0}) {
    const double near = std::round(value * parts) / parts;
    if (std::abs(value - near) < std::min(error, 2e-5)) return near;
  }
  return value;
}

double angle_at(const at::TensorAccessor<const double, 2>& rows, int64_t row, const Pair& pair) {
  return std::atan2(rows[row][pair.sin], rows[row][pair.cos]);
}

// The position of a row. Each frequency refines it within the turn that the lower ones determine.
double position_of(const at::TensorAccessor<const double, 2>& rows, int64_t row,
                   const std::vector<Pair>& ascending) {
  double position = 0;
  for (const Pair& pair : ascending) {
    const double turn = pair.frequency;
    position += wrapped(angle_at(rows, row, pair) - position * turn) / turn;
  }
  return position;
}

// The radians per row of a pair, refined over longer and longer distances.
double rate_of(const at::TensorAccessor<const double, 2>& rows, int64_t count, const Pair& pair) {
  double rate = 0;
  for (int64_t distance = 1; distance < count; distance *= 2) {
    double sin = 0, cos = 0;
    for (int64_t row = 0; row + distance < count; ++row) {
      const double turn = angle_at(rows, row + distance, pair) - angle_at(rows, row, pair);
      sin += std::sin(turn);
      cos += std::cos(turn);
    }
    const double span = static_cast<double>(distance);
    rate += wrapped(std::atan2(sin, cos) - rate * span) / span;
  }
  return rate;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() < 1e-6;
}

}  // namespace

std::vector<Pair> pairs(const SinusoidOptions& o, int64_t block, int64_t channels) {
  const Frequencies all = frequencies(o, o.axis_widths()[block], 1);
  at::Tensor f = (all.sin.dim() == 2 ? all.sin.select(0, 0) : all.sin).to(at::kDouble).contiguous();
  const double* value = f.const_data_ptr<double>();
  const Columns sin = columns(o, block, false), cos = columns(o, block, true);
  std::vector<Pair> result;
  for (int64_t i = 0; i < std::min({sin.count, cos.count, f.size(0)}); ++i) {
    const double rate = o.phase() == sinusoid::Phase::Quotient ? 1 / value[i] : value[i];
    const Pair pair{rate * o.angle_scale(), sin.first + i * sin.step, cos.first + i * cos.step};
    if (pair.sin < channels && pair.cos < channels) result.push_back(pair);
  }
  return result;
}

std::optional<Line> decode(const SinusoidOptions& o, const at::Tensor& rows,
                           const std::vector<int64_t>& numbers) {
  const auto value = rows.accessor<const double, 2>();
  const auto count = static_cast<int64_t>(numbers.size());
  if (count < 2) return std::nullopt;
  int64_t axis = 0;
  double factor = 1;
  for (size_t i = 0; i < o.coordinates().size(); ++i) {
    if (!o.coordinates()[i].complement) {
      axis = static_cast<int64_t>(i);
      factor = o.coordinates()[i].factor;
      break;
    }
  }
  std::vector<Pair> ascending = pairs(o, axis, rows.size(1));
  std::stable_sort(ascending.begin(), ascending.end(),
                   [](const Pair& a, const Pair& b) { return a.frequency < b.frequency; });
  if (ascending.empty()) return std::nullopt;
  std::vector<double> position;
  for (int64_t row = 0; row < count; ++row) {
    position.push_back(o.raw_first() ? value[row][axis] / factor
                                     : position_of(value, row, ascending) / factor);
  }
  const double span = static_cast<double>(numbers.back() - numbers.front());
  double step = (position.back() - position.front()) / span;
  const double first = (position[1] - position[0]) / static_cast<double>(numbers[1] - numbers[0]);
  if (!std::isfinite(step) || std::abs(first - step) > 0.05 * std::abs(step) + 0.05) step = first;
  const double unit = std::min(1.0, std::abs(step));
  step = snapped(step, 0.02 * unit);
  const double start = position[0] - step * static_cast<double>(numbers[0]);
  // If the frequencies are far apart, any two angles fit some position: odd steps prove nothing.
  const bool simple = snapped(step, 2e-5) == step && std::abs(step) <= kLongestStep;
  if (std::abs(step) < 1e-4 || (!simple && std::abs(step) > std::numbers::pi)) return std::nullopt;
  return Line{snapped(start, 0.05 * unit), step};
}

std::optional<Rates> fit_rates(const std::vector<Pair>& pairs, double base,
                               const at::Tensor& rows) {
  const auto value = rows.accessor<const double, 2>();
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  int used = 0;
  for (const Pair& pair : pairs) {
    const double rate = std::abs(rate_of(value, rows.size(0), pair));
    if (rate < 1e-6 || rate > 3.0 || pair.frequency <= 0) continue;
    const double x = -std::log(pair.frequency) / std::log(base), y = std::log(rate);
    // The effect on the logarithm of an error of 1/512 in an angle, which is bfloat16's rounding.
    const double error = 1.0 / 512 / (rate * static_cast<double>(rows.size(0)));
    const double w = 1 / (error * error + 1e-8);
    n += w, sx += w * x, sy += w * y, sxx += w * x * x, sxy += w * x * y;
    ++used;
  }
  const double spread = n * sxx - sx * sx;
  if (used < 2 || !(spread > 0)) return std::nullopt;
  const double slope = (n * sxy - sx * sy) / spread;
  const Rates result{std::exp(-slope), std::exp((sy - slope * sx) / n)};
  const bool sane = std::isfinite(result.base) && result.base > 1.01 && result.base < 1e15;
  return sane ? std::optional(result) : std::nullopt;
}

std::optional<double> fit_linear(const std::vector<Pair>& pairs, double step,
                                 const at::Tensor& rows) {
  if (pairs.size() < 2 || step == 0) return std::nullopt;
  const auto value = rows.accessor<const double, 2>();
  const double first = std::abs(rate_of(value, rows.size(0), pairs[0]) / step);
  const double second = std::abs(rate_of(value, rows.size(0), pairs[1]) / step);
  const double last = 1 + (second / first - 1) * static_cast<double>(pairs.size() - 1);
  return std::isfinite(last) && last > 1 ? std::optional(last) : std::nullopt;
}

double rounder(double value) {
  if (!(value > 0) || !std::isfinite(value)) return value;
  for (const double digits : {1.0, 2.0, 3.0}) {
    const double unit = std::pow(10.0, std::floor(std::log10(value)) - (digits - 1));
    const double near = std::round(value / unit) * unit;
    if (std::abs(value / near - 1) < 0.01 / digits) return std::round(near * 1e6) / 1e6;
  }
  return value;
}

std::vector<int64_t> periods(const at::Tensor& rows) {
  const int64_t count = rows.size(0);
  if (count < 4) return {count};
  const at::Tensor first = rows.select(0, 0).to(at::kDouble);
  const at::Tensor change = (rows.select(0, 1).to(at::kDouble) - first).abs();
  const double most = change.max().item<double>();
  if (most == 0) return {count};
  const at::Tensor inner = (change > 0.25 * most).nonzero().reshape({-1});
  const at::Tensor start = first.index_select(0, inner);
  int64_t found = 0;
  std::vector<std::pair<int64_t, double>> apart;
  double least = kTrainedTolerance;
  for (int64_t period = 2; period <= count / 2 && found == 0; ++period) {
    if (count % period != 0) continue;
    const at::Tensor there = rows.select(0, period).to(at::kDouble).index_select(0, inner);
    if (same(there, start)) found = period;
    apart.emplace_back(period, (there - start).abs().mean().item<double>());
    least = std::min(least, apart.back().second);
  }
  for (const auto& [period, distance] : apart) {  // trained since: the shortest of the good ones
    // Means of a few dozen channels' noise differ by up to 1.7 times.
    const bool is_good = distance < kTrainedTolerance && distance <= 2.5 * least;
    if (found == 0 && least < kTrainedTolerance && is_good) found = period;
  }
  if (found == 0) return {count};
  const at::Tensor outer = rows.slice(0, 0, count, found);
  std::vector<int64_t> result = periods(outer);
  result.push_back(found);
  if (result.size() > 3) return {count / found, found};
  return result;
}

}  // namespace posenc::identification
