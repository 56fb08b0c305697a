#include "parity/program/difference.h"

#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/floating_point.h"
#include "parity/program/counterpart.h"
#include "posenc/core/compare_tensors.h"

namespace posenc::parity {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, b); }

}  // namespace

Difference difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) {
    return {false, kNaN, kNaN,
            fmt::format("{} {} and {} {}", dtype_text(a), shape_of(a), dtype_text(b), shape_of(b))};
  }
  const TensorComparison compared = compare_tensors(a, b);
  if (compared.ok) {  // but for the bits of NaNs
    return at::equal(bits_of(a), bits_of(b)) ? Difference() : Difference{false, kNaN, kNaN, ""};
  }
  const double ulps = compared.max_ulps;
  return {false, std::isnan(ulps) ? kNaN : compared.difference, ulps, ""};
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
