#include "parity/program/difference.h"

#include <fmt/format.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "core/ordinals.h"
#include "parity/program/counterpart.h"

namespace posenc::parity {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// max |i - j|, exact while it is small; differences of float64 ordinals may overflow int64.
double farthest(const at::Tensor& i, const at::Tensor& j) {
  const auto about = (i.to(at::kDouble) - j.to(at::kDouble)).abs();
  const auto exact = (i - j).abs().to(at::kDouble);
  return torch::where(about < std::ldexp(1.0, 52), exact, about).max().item<double>();
}

double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, b); }

}  // namespace

Difference difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) {
    return {false, kNaN, kNaN,
            fmt::format("{} {} and {} {}", dtype_text(a), shape_of(a), dtype_text(b), shape_of(b))};
  }
  const auto bits_a = bits_of(a);
  const auto bits_b = bits_of(b);
  if (at::equal(bits_a, bits_b)) return {};
  Difference result{false, 0.0, 0.0, ""};
  // Exclude equal bits first: two equal infinities would give NaN.
  const auto apart = (bits_a != bits_b).flatten();
  const auto x = a.flatten().masked_select(apart).to(at::kDouble);
  const auto y = b.flatten().masked_select(apart).to(at::kDouble);
  result.max_abs = (x - y).abs().max().item<double>();  // max() propagates NaN
  if (a.is_floating_point()) {
    const auto i = ordinals(bits_a.flatten().masked_select(apart));
    const auto j = ordinals(bits_b.flatten().masked_select(apart));
    result.max_ulp = std::isnan(result.max_abs) ? kNaN : farthest(i, j);
  }
  return result;
}

Difference worst(const Difference& a, const Difference& b) {
  return {a.equal && b.equal, larger(a.max_abs, b.max_abs), larger(a.max_ulp, b.max_ulp),
          a.why.empty() ? b.why : a.why};
}

std::string short_number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e7 ? fmt::format("{:.0f}", value)
                                                             : fmt::format("{:.2g}", value);
}

}  // namespace posenc::parity
