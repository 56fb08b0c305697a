#include "support/compare.h"

#include <algorithm>

namespace posenc::testing {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

struct Row {
  Op op;
  torch::Dtype dtype;
  double relative;  // to the largest magnitude in the whole tensor
  double absolute;
  const char* reason;
};

constexpr double kFloat = 1.1920928955078125e-07;  // 2^-23

const Row kTolerances[] = {
    {Op::Forward, torch::kFloat, 0.0, 0.0, "IEEE operations in the same order"},
    {Op::Forward, torch::kDouble, 0.0, 0.0, "IEEE operations in the same order"},
    {Op::Forward, torch::kBFloat16, 0.0, 0.0, "rounded where Python rounds"},
    {Op::Forward, torch::kHalf, 0.0, 0.0, "rounded where Python rounds"},
    {Op::Linear, torch::kFloat, 16 * kFloat, 1e-7, "sums of some 100 products, another order"},
    {Op::Linear, torch::kDouble, 1e-14, 1e-15, "sums of some 100 products, another order"},
    {Op::Linear, torch::kBFloat16, 2e-2, 1e-2, "rounded to 8 bits of mantissa a layer"},
    {Op::Linear, torch::kHalf, 2e-3, 1e-3, "rounded to 11 bits of mantissa a layer"},
    {Op::Sums, torch::kFloat, 16 * kFloat, 4e-6, "some 100 roundings of terms of size 1"},
    {Op::BFloat16Attention, torch::kFloat, 0.0, 1.6e-2, "weights rounded to 8 bits of mantissa"},
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

Row row_of(Op op, torch::Dtype dtype) {
  for (const Row& row : kTolerances) {
    if (row.op == op && row.dtype == dtype) return row;
  }
  ADD_FAILURE() << "no tolerance is stated for this operation in " << dtype;
  return {op, dtype, 0.0, 0.0, ""};
}

AssertionResult near(const torch::Tensor& a, const torch::Tensor& b, const Tolerance& tolerance) {
  const auto comparison = compare_tensors(a, b, tolerance);
  return comparison.ok ? AssertionSuccess() : AssertionFailure() << comparison;
}

// A failure if shapes or dtypes differ.
AssertionResult same_kind(const torch::Tensor& a, const torch::Tensor& b) {
  const auto comparison = compare_tensors(a, b);
  return comparison.mismatch.empty() ? AssertionSuccess() : AssertionFailure() << comparison;
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

AssertionResult bit_equal(const torch::Tensor& a, const torch::Tensor& b) { return near(a, b, {}); }

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
  if (op != Op::ForeignTable) return near(a, b, tolerance_of(op, b.scalar_type()));
  if (auto same = same_kind(a, b); !same) return same;
  const auto position = torch::arange(a.size(-2), torch::kDouble).unsqueeze(1);
  return below(foreign_bound(position), a, b);
}

AssertionResult within(Op op, const torch::Tensor& a, const torch::Tensor& b,
                       const torch::Tensor& exact) {
  auto tolerance = tolerance_of(op, b.scalar_type());
  if (b.numel() > 0) {
    const double own = (b.to(torch::kDouble) - exact).abs().max().item<double>();
    tolerance.atol(tolerance.atol() + kInexactFactor * own);
  }
  return near(a, b, tolerance);
}

Tolerance tolerance_of(Op op, torch::Dtype dtype) {
  const Row row = row_of(op, dtype);
  return Tolerance().rtol_of_max(row.relative).atol(row.absolute);
}

double allowance(Op op, torch::Dtype dtype, double size) {
  const Row row = row_of(op, dtype);
  return row.relative * size + row.absolute;
}

AssertionResult within_foreign(double farthest, const torch::Tensor& a, const torch::Tensor& b) {
  const auto bound = foreign_bound(torch::full({}, farthest, torch::kDouble)).item<double>();
  return near(a, b, Tolerance().atol(bound * std::max(1.0, b.detach().abs().max().item<double>())));
}

}  // namespace posenc::testing
