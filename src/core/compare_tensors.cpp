#include "posenc/core/compare_tensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>

#include "core/floating_point.h"

namespace posenc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string kind_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return fmt::format("{} ({})", c10::getDtypeNames(tensor.scalar_type()).first,
                     fmt::join(tensor.sizes(), ", "));
}

std::string mismatch_of(const at::Tensor& actual, const at::Tensor& expected) {
  const bool both = actual.defined() && expected.defined();
  if (both && actual.sizes() == expected.sizes() &&
      actual.scalar_type() == expected.scalar_type()) {
    return "";
  }
  const char* what = !both                                ? ""
                     : actual.sizes() != expected.sizes() ? "another shape: "
                                                          : "another dtype: ";
  return fmt::format("{}got {}, expected {}", what, kind_of(actual), kind_of(expected));
}

void check_tolerance(const char* name, double value) {
  TORCH_CHECK_VALUE(value >= 0.0 && value < kInfinity, "[compare_tensors] ", name,
                    " must be finite and not negative. Got ", value);
}

// On the CPU, dense, and with the parts of a complex number as another axis.
at::Tensor real_values(const at::Tensor& tensor) {
  at::Tensor plain = tensor.detach().cpu().to_dense().resolve_conj().resolve_neg().contiguous();
  return plain.is_complex() ? at::view_as_real(plain) : plain;
}

// |i - j| of integers, exact while it is small; larger ones may overflow int64.
at::Tensor integer_distance(const at::Tensor& i, const at::Tensor& j) {
  const at::Tensor about = (i.to(at::kDouble) - j.to(at::kDouble)).abs();
  const at::Tensor exact = (i.to(at::kLong) - j.to(at::kLong)).abs().to(at::kDouble);
  return at::where(about < 0x1p52, exact, about);
}

double largest_finite(const at::Tensor& values) {
  const at::Tensor magnitude = values.abs();
  return at::where(magnitude.isfinite(), magnitude, at::zeros_like(magnitude)).max().item<double>();
}

// The factor f for which actual is f * expected but for rounding; 1 if there is none. It has to
// explain 99 % of the difference of each element, and to be no rounding itself. An element that is
// right already has no factor, even if it is small beside the rounding of the largest. Both tensors
// are finite.
double common_factor(const at::Tensor& actual, const at::Tensor& expected, double epsilon) {
  if (expected.count_nonzero().item<int64_t>() < 2) return 1.0;
  const double factor = ((actual * expected).sum() / (expected * expected).sum()).item<double>();
  if (!std::isfinite(factor) || std::abs(factor - 1.0) <= 16 * epsilon) return 1.0;
  const at::Tensor difference = (actual - expected).abs();
  const at::Tensor left = (actual - factor * expected).abs();
  const bool explained =
      left.le(0.01 * difference + epsilon * largest_finite(actual)).all().item<bool>();
  return explained && !difference.eq(0).logical_and(expected.ne(0)).any().item<bool>() ? factor
                                                                                       : 1.0;
}

std::string number(const c10::Scalar& value, at::ScalarType type) {
  if (value.isBoolean()) return value.toBool() ? "true" : "false";
  if (value.isIntegral(/*includeBool=*/false)) return fmt::format("{}", value.toLong());
  const int digits = type == at::kDouble ? 17 : epsilon_of(type) >= 0x1p-10 ? 5 : 9;
  return fmt::format("{:.{}g}", value.toDouble(), digits);
}

std::string factor_text(const TensorComparison& found) {
  if (found.factor == 0.0) return "every element is zero";
  const auto last = static_cast<double>(found.last_dimension);
  const double near = std::max(1e-6, epsilon_of(found.dtype));
  const auto is = [&](double value) { return std::abs(found.factor / value - 1.0) <= near; };
  if (is(-1.0)) return "every element has the opposite sign";
  const std::string name = is(std::sqrt(last))       ? fmt::format("sqrt({})", last)
                           : is(1 / std::sqrt(last)) ? fmt::format("1 / sqrt({})", last)
                           : is(last)                ? fmt::format("{}", last)
                           : is(1 / last)            ? fmt::format("1 / {}", last)
                                                     : "";
  const std::string why = name.empty() ? "" : fmt::format(" = {}, from the last dimension", name);
  return fmt::format("every element is the expected one times {:.7g}{}", found.factor, why);
}

std::string tolerance_text(const Tolerance& tolerance) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, double value) {
    if (value > 0.0) parts.push_back(fmt::format("{} {:g}", name, value));
  };
  add("rtol", tolerance.rtol());
  add("atol", tolerance.atol());
  add("rtol_of_max", tolerance.rtol_of_max());
  return parts.empty() ? "have other bits"
                       : fmt::format("differ by more than {}", fmt::join(parts, " + "));
}

}  // namespace

TensorComparison compare_tensors(const at::Tensor& actual, const at::Tensor& expected,
                                 const Tolerance& tolerance) {
  check_tolerance("rtol", tolerance.rtol());
  check_tolerance("atol", tolerance.atol());
  check_tolerance("rtol_of_max", tolerance.rtol_of_max());
  const at::NoGradGuard no_grad;
  TensorComparison result;
  result.tolerance = tolerance;
  result.mismatch = mismatch_of(actual, expected);
  result.ok = result.mismatch.empty();
  if (!result.ok) return result;
  const at::Tensor a = real_values(actual), b = real_values(expected);
  result.numel = b.numel();
  result.dtype = b.scalar_type();
  if (expected.dim() > 0) result.last_dimension = expected.size(-1);
  const at::Tensor bits_a = bits_of(a), bits_b = bits_of(b);
  if (at::equal(bits_a, bits_b)) return result;

  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const at::Tensor apart = bits_a.ne(bits_b) & ~(x.isnan() & y.isnan());
  if (!apart.any().item<bool>()) return result;
  const bool is_real = b.is_floating_point();
  const at::Tensor distance = is_real ? (x - y).abs() : integer_distance(a, b);
  at::Tensor allowed = at::zeros_like(y);
  at::Tensor outside = apart;
  const double of_max = tolerance.rtol_of_max() * largest_finite(y);
  if (tolerance.rtol() > 0 || tolerance.atol() > 0 || tolerance.rtol_of_max() > 0) {
    allowed = tolerance.atol() + of_max + tolerance.rtol() * y.abs();
    outside = apart & ~(distance.isfinite() & distance.le(allowed));
  }
  result.outside = outside.sum().item<int64_t>();
  result.ok = result.outside == 0;

  const at::Tensor badness = (result.ok ? distance : distance - allowed)
                                 .nan_to_num(kInfinity, kInfinity)
                                 .masked_fill(result.ok ? ~apart : ~outside, -kInfinity);
  int64_t index = badness.argmax().item<int64_t>();
  result.actual = a.view(-1)[index].item();
  result.expected = b.view(-1)[index].item();
  result.difference = distance.view(-1)[index].item<double>();
  if (is_real) {
    const at::Tensor ulps =
        at::where(x.isnan() | y.isnan(), std::numeric_limits<double>::quiet_NaN(),
                  integer_distance(ordinals(bits_a), ordinals(bits_b)))
            .masked_fill(~apart, 0.0);
    result.ulps = ulps.view(-1)[index].item<double>();
    result.max_ulps = ulps.max().item<double>();
    const at::Tensor finite = x.isfinite() & y.isfinite();
    if (!result.ok && !(apart & ~finite).any().item<bool>()) {
      result.factor = common_factor(x.masked_fill(~finite, 0.0), y.masked_fill(~finite, 0.0),
                                    epsilon_of(result.dtype));
    }
  }
  for (int64_t axis = b.dim() - 1; axis >= 0; index /= b.size(axis--)) {
    result.worst.insert(result.worst.begin(), index % b.size(axis));
  }
  return result;
}

std::string TensorComparison::to_string() const {
  if (!mismatch.empty()) return mismatch;
  if (difference == 0.0 && ok) return fmt::format("all {} elements are equal", numel);
  std::string text =
      ok ? fmt::format("all {} elements are within the tolerance", numel)
         : fmt::format("{} of {} elements {}", outside, numel, tolerance_text(tolerance));
  text += fmt::format("\n{} at [{}]: got {}, expected {}, difference {:.3g}",
                      ok ? "largest difference" : "worst", fmt::join(worst, ", "),
                      number(actual, dtype), number(expected, dtype), difference);
  if (at::isFloatingType(dtype) && std::isfinite(ulps)) {
    text += ulps < 1e9 ? fmt::format(", {:.0f} ulp", ulps) : fmt::format(", {:.2g} ulp", ulps);
  }
  return factor == 1.0 ? text : text + "\n" + factor_text(*this);
}

std::ostream& operator<<(std::ostream& out, const TensorComparison& comparison) {
  return out << comparison.to_string();
}

}  // namespace posenc
