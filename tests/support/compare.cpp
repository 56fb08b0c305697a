#include "support/compare.h"

#include <algorithm>
#include <cstring>

namespace posenc::testing {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

struct Tolerance {
  Op op;
  torch::Dtype dtype;
  double relative;  // to the largest magnitude in the whole tensor
  double absolute;
  const char* reason;
};

constexpr double kFloat = 1.1920928955078125e-07;  // 2^-23

const Tolerance kTolerances[] = {
    {Op::Forward, torch::kFloat, 0.0, 0.0, "IEEE operations in the same order"},
    {Op::Forward, torch::kDouble, 0.0, 0.0, "IEEE operations in the same order"},
    {Op::Forward, torch::kBFloat16, 0.0, 0.0, "rounded where Python rounds"},
    {Op::Forward, torch::kHalf, 0.0, 0.0, "rounded where Python rounds"},
    {Op::Linear, torch::kFloat, 16 * kFloat, 1e-7, "sums of some 100 products, another order"},
    {Op::Linear, torch::kDouble, 1e-14, 1e-15, "sums of some 100 products, another order"},
    {Op::Linear, torch::kBFloat16, 2e-2, 1e-2, "rounded to 8 bits of mantissa a layer"},
    {Op::Linear, torch::kHalf, 2e-3, 1e-3, "rounded to 11 bits of mantissa a layer"},
    {Op::Sums, torch::kFloat, 16 * kFloat, 4e-6, "some 100 roundings of terms of size 1"},
    {Op::LongSums, torch::kFloat, 64 * kFloat, 1e-4,
     "some 2000 roundings of terms of size 1, which may cancel"},
    {Op::RankSums, torch::kFloat, 1e-6, 1e-7, "sums over processes, in another order"},
    {Op::RankSums, torch::kDouble, 1e-12, 1e-13, "sums over processes, in another order"},
    {Op::RankSums, torch::kBFloat16, 2e-2, 1e-2, "rounded to 8 bits of mantissa a layer"},
    {Op::Scores, torch::kFloat, 1e-5, 1e-4, "differences of logits of size 100, from Layers"},
    {Op::Layers, torch::kFloat, 1e-5, 1e-6, "sums in another order, passed on from layer to layer"},
    {Op::Layers, torch::kDouble, 1e-12, 1e-13,
     "sums in another order, passed on from layer to layer"},
    {Op::Layers, torch::kBFloat16, 8e-2, 2e-2, "rounded to 8 bits of mantissa a layer"},
    {Op::Layers, torch::kHalf, 1e-2, 2e-3, "rounded to 11 bits of mantissa a layer"},
    {Op::Logits, torch::kFloat, 0.0, 1e-5, "sums in another order, through two stacks"},
    {Op::Score, torch::kFloat, 1e-6, 1e-5, "sums in another order, one a token"},
    {Op::Gradient, torch::kFloat, 16 * kFloat, 1e-7, "sums over the tokens, another order"},
    {Op::Gradient, torch::kDouble, 1e-14, 1e-15, "sums over the tokens, another order"},
    {Op::Gradient, torch::kBFloat16, 2e-2, 1e-2, "sums in bfloat16, 8 bits of mantissa"},
    {Op::Gradient, torch::kHalf, 2e-3, 1e-3, "sums in float16, 11 bits of mantissa"},
    {Op::Training, torch::kFloat, 1e-5, 1e-6, "Adam divides by small second moments"},
    {Op::FirstLoss, torch::kFloat, 2 * kFloat, 2e-6, "sums in another order"},
    {Op::Losses, torch::kFloat, 0.0, 1e-4, "Adam divides by small second moments, twenty times"},
    {Op::DropoutLosses, torch::kFloat, 0.0, 2e-4, "as without dropout, with larger gradients"},
};

// How many times farther from the exact result than another one a result with different rounding
// may be: both errors are random, and among a few numbers one of them may be small by chance.
constexpr double kInexactFactor = 16.0;

Tolerance tolerance(Op op, torch::Dtype dtype) {
  for (const Tolerance& row : kTolerances) {
    if (row.op == op && row.dtype == dtype) return row;
  }
  ADD_FAILURE() << "no tolerance is stated for this operation in " << dtype;
  return {op, dtype, 0.0, 0.0, ""};
}

AssertionResult same_kind(const torch::Tensor& a, const torch::Tensor& b) {
  if (!a.defined() || !b.defined()) return AssertionFailure() << "an undefined tensor";
  if (a.sizes() != b.sizes())
    return AssertionFailure() << "shapes " << a.sizes() << " and " << b.sizes();
  if (a.dtype() != b.dtype())
    return AssertionFailure() << "types " << a.dtype() << " and " << b.dtype();
  return AssertionSuccess();
}

double largest(const torch::Tensor& a, const torch::Tensor& b) {
  return torch::maximum(a.detach().abs().max(), b.detach().abs().max()).item<double>();
}

torch::Tensor foreign_bound(const torch::Tensor& position) {
  return position * (3.0 / (1 << 24)) + 1.2e-7;
}

// a - b| <= bound, element by element.
AssertionResult below(const torch::Tensor& bound, const torch::Tensor& a, const torch::Tensor& b) {
  const auto x = a.detach().cpu().to(torch::kDouble).contiguous();
  const auto y = b.detach().cpu().to(torch::kDouble).contiguous();
  const auto most = bound.expand_as(x).contiguous();
  const auto excess = (x - y).abs() - most;
  if ((excess <= 0).all().item<bool>()) return AssertionSuccess();  // false for NaN as well
  const auto worst = excess.nan_to_num(1e300).argmax().item<int64_t>();
  return AssertionFailure() << x.view(-1)[worst].item<double>() << " and "
                            << y.view(-1)[worst].item<double>() << " at flat index " << worst
                            << " differ by more than " << most.view(-1)[worst].item<double>();
}

// Whether LibTorch's sine of a number does not depend on the neighbouring elements.
bool sines_are_alone() {
  const auto angle = torch::linspace(0, 3, 4001);
  const auto beside = torch::stack({angle, torch::full_like(angle, 500.0)}, 1);
  return torch::equal(beside.sin().select(1, 0), angle.sin());
}

}  // namespace

AssertionResult bit_equal(const torch::Tensor& a, const torch::Tensor& b) {
  if (auto same = same_kind(a, b); !same) return same;
  const auto x = a.detach().cpu().contiguous();
  const auto y = b.detach().cpu().contiguous();
  const auto* p = static_cast<const char*>(x.const_data_ptr());
  const auto* q = static_cast<const char*>(y.const_data_ptr());
  const auto size = static_cast<int64_t>(x.element_size());
  int64_t different = 0, first = -1;
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (std::memcmp(p + i * size, q + i * size, size) == 0) continue;
    if (first < 0) first = i;
    ++different;
  }
  if (different == 0) return AssertionSuccess();
  return AssertionFailure() << different << " of " << x.numel() << " elements differ, first "
                            << x.view(-1)[first].item<double>() << " and "
                            << y.view(-1)[first].item<double>() << " at flat index " << first;
}

AssertionResult same_sines(const torch::Tensor& a, const torch::Tensor& b) {
  static const bool alone = sines_are_alone();
  if (alone) return bit_equal(a, b);
  if (auto same = same_kind(a, b); !same) return same;
  const double ulp = a.scalar_type() == torch::kDouble     ? 0x1p-52
                     : a.scalar_type() == torch::kBFloat16 ? 0x1p-7
                     : a.scalar_type() == torch::kHalf     ? 0x1p-10
                                                           : 0x1p-23;
  const auto [fraction, exponent] = torch::frexp(b.detach().cpu().to(torch::kDouble));
  return below(fraction.ne(0) * torch::pow(2.0, exponent - 1) * ulp, a, b);
}

AssertionResult within(Op op, const torch::Tensor& a, const torch::Tensor& b) {
  if (auto same = same_kind(a, b); !same) return same;
  if (a.numel() == 0) return AssertionSuccess();
  if (op == Op::ForeignTable) {
    const auto position = torch::arange(a.size(-2), torch::kDouble).unsqueeze(1);
    return below(foreign_bound(position), a, b);
  }
  const double bound = allowance(op, a.scalar_type(), largest(a, b));
  return below(torch::full({}, bound, torch::kDouble), a, b);
}

AssertionResult within(Op op, const torch::Tensor& a, const torch::Tensor& b,
                       const torch::Tensor& exact) {
  if (auto same = same_kind(a, b); !same) return same;
  if (a.numel() == 0) return AssertionSuccess();
  const double own = (b.to(torch::kDouble) - exact).abs().max().item<double>();
  const double bound = allowance(op, a.scalar_type(), largest(a, b)) + kInexactFactor * own;
  return below(torch::full({}, bound, torch::kDouble), a, b);
}

double allowance(Op op, torch::Dtype dtype, double size) {
  const Tolerance row = tolerance(op, dtype);
  return row.relative * size + row.absolute;
}

AssertionResult within_foreign(double farthest, const torch::Tensor& a, const torch::Tensor& b) {
  if (auto same = same_kind(a, b); !same) return same;
  const auto bound = foreign_bound(torch::full({}, farthest, torch::kDouble));
  return below(bound * std::max(1.0, largest(a, b)), a, b);
}

}  // namespace posenc::testing
