// Which element is worst, by how much and why: the numbers that a failing parity test prints.

#include "posenc/core/compare_tensors.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "core/floating_point.h"
#include "support/compare.h"

namespace posenc {
namespace {

using testing::message_of;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string text_of(const at::Tensor& actual, const at::Tensor& expected,
                    const Tolerance& tolerance = {}) {
  return compare_tensors(actual, expected, tolerance).to_string();
}

TEST(CompareTensors, EqualBitsAreEqual) {
  const auto x = torch::tensor({1.0f, -0.0f, kNaN, kInfinity});
  EXPECT_TRUE(compare_tensors(x, x.clone()).ok);
  EXPECT_EQ(text_of(x, x.clone()), "all 4 elements are equal");
  EXPECT_TRUE(compare_tensors(torch::zeros({0, 3}), torch::zeros({0, 3})).ok);
  EXPECT_FALSE(compare_tensors(torch::tensor({-0.0f}), torch::tensor({0.0f})).ok);
  EXPECT_TRUE(
      compare_tensors(torch::tensor({-0.0f}), torch::tensor({0.0f}), Tolerance().atol(1e-30)).ok);
}

TEST(CompareTensors, NamesTheWorstElement) {
  const auto expected = torch::arange(24, torch::kFloat).view({2, 3, 4});
  auto actual = expected.clone();
  actual[0][1][2] += 1e-3;
  actual[1][2][3] -= 0.5;
  const auto found = compare_tensors(actual, expected);
  EXPECT_EQ(found.outside, 2);
  EXPECT_EQ(found.worst, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(found.difference, 0.5);
  EXPECT_EQ(found.actual.toDouble(), 22.5);
  EXPECT_EQ(found.to_string(),
            "2 of 24 elements have other bits\nworst at [1, 2, 3]: got 22.5, expected 23, "
            "difference 0.5, 262144 ulp");
}

TEST(CompareTensors, ElementsWithinTheToleranceAreNotTheWorst) {
  const auto expected = torch::tensor({1000.0f, 1.0f, 2.0f});
  const auto actual = torch::tensor({1000.5f, 1.25f, 2.0f});
  const auto found = compare_tensors(actual, expected, Tolerance().rtol(1e-3));
  EXPECT_EQ(found.outside, 1);
  EXPECT_EQ(found.worst, std::vector<int64_t>{1});
  EXPECT_EQ(text_of(actual, expected, Tolerance().rtol(1e-3).atol(1)),
            "all 3 elements are within the tolerance\nlargest difference at [0]: "
            "got 1000.5, expected 1000, difference 0.5, 8192 ulp");
  EXPECT_FALSE(compare_tensors(actual, expected, Tolerance().rtol_of_max(2e-4)).ok);
  EXPECT_TRUE(compare_tensors(actual, expected, Tolerance().rtol_of_max(5.1e-4)).ok);
}

TEST(CompareTensors, CountsUlpsInTheDtype) {
  for (const auto& [dtype, integers] : {std::pair(torch::kFloat8_e4m3fn, torch::kChar),
                                        {torch::kHalf, torch::kShort},
                                        {torch::kBFloat16, torch::kShort},
                                        {torch::kFloat, torch::kInt},
                                        {torch::kDouble, torch::kLong}}) {
    const auto expected = torch::tensor({1.0, -3.0}).to(dtype);
    const auto actual = (expected.view(integers) + 3).view(dtype);
    const auto found = compare_tensors(actual, expected);
    EXPECT_EQ(found.ulps, 3) << dtype;
    EXPECT_EQ(found.max_ulps, 3) << dtype;
    EXPECT_EQ(found.worst, std::vector<int64_t>{1}) << dtype;
  }
  // Through zero.
  const auto tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(compare_tensors(torch::tensor({-tiny}), torch::tensor({tiny})).ulps, 2);
}

TEST(CompareTensors, NaNAndInfinityAreOnlyEqualToThemselves) {
  const auto quiet = torch::tensor({kNaN});
  const auto negative = -quiet;  // another NaN
  EXPECT_TRUE(compare_tensors(negative, quiet).ok);
  const auto loose = Tolerance().rtol(1).atol(1e30).rtol_of_max(1);
  const auto row = [](float value) { return torch::tensor({1.0f, value}); };
  for (const auto& [actual, expected] : {std::pair(kNaN, 1.0f),
                                         {1.0f, kNaN},
                                         {kInfinity, 1.0f},
                                         {1.0f, kInfinity},
                                         {kInfinity, -kInfinity},
                                         {kNaN, kInfinity}}) {
    const auto found = compare_tensors(row(actual), row(expected), loose);
    EXPECT_EQ(found.outside, 1) << actual << expected;
    EXPECT_EQ(found.worst, std::vector<int64_t>{1});
  }
  EXPECT_EQ(text_of(row(kNaN), row(2), loose),
            "1 of 2 elements differ by more than rtol 1 + atol 1e+30 + rtol_of_max 1\nworst "
            "at [1]: got nan, expected 2, difference nan");
  // Where both are NaN, or both zero, is not the worst.
  EXPECT_EQ(compare_tensors(torch::tensor({kNaN, 2.0f}), torch::tensor({kNaN, 1.0f})).worst,
            std::vector<int64_t>{1});
  EXPECT_EQ(compare_tensors(torch::tensor({1.0f, -0.0f}), torch::tensor({1.0f, 0.0f})).worst,
            std::vector<int64_t>{1});
  // A NaN is worse than any number.
  EXPECT_EQ(compare_tensors(torch::tensor({9e9f, kNaN}), torch::tensor({0.0f, 0.0f})).worst,
            std::vector<int64_t>{1});
}

TEST(CompareTensors, SaysShapesAndDtypesFirst) {
  const auto x = torch::zeros({2, 3});
  EXPECT_EQ(text_of(x.t(), x), "another shape: got float32 (3, 2), expected float32 (2, 3)");
  EXPECT_EQ(text_of(x.to(torch::kHalf), x),
            "another dtype: got float16 (2, 3), expected float32 (2, 3)");
  EXPECT_EQ(text_of({}, x), "got an undefined tensor, expected float32 (2, 3)");
  EXPECT_FALSE(compare_tensors(x, torch::zeros({6}), Tolerance().atol(1)).ok);
}

TEST(CompareTensors, NamesAConstantFactor) {
  torch::manual_seed(0);
  const auto expected = torch::randn({3, 4, 32});
  const auto ends_with = [&](const at::Tensor& actual, const std::string& text) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "\n" + text, text_of(actual, expected));
  };
  ends_with(expected * std::sqrt(32.0),
            "every element is the expected one times 5.656854 = sqrt(32), from the last dimension");
  ends_with(expected / std::sqrt(32.0),
            "every element is the expected one times 0.1767767 = 1 / "
            "sqrt(32), from the last dimension");
  ends_with(expected * 3, "every element is the expected one times 3");
  ends_with(-expected, "every element has the opposite sign");
  ends_with(torch::zeros_like(expected), "every element is zero");
  auto with_nan = expected.clone();  // where Python's is NaN as well
  with_nan[0][0][0] = kNaN;
  EXPECT_NEAR(compare_tensors(with_nan * 3, with_nan).factor, 3.0, 1e-6);
  EXPECT_EQ(compare_tensors(with_nan * 3, expected).factor, 1.0);
  for (const auto dtype : {torch::kHalf, torch::kBFloat16}) {
    const auto narrow = expected.to(dtype);
    const auto found = compare_tensors(narrow * std::sqrt(32.0), narrow);
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "sqrt(32)", found.to_string());
    const auto rounded = (-expected * (1 + epsilon_of(dtype) / 4)).to(dtype);
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "the opposite sign", text_of(rounded, narrow));
  }
}

TEST(CompareTensors, SeesNoFactorWhereThereIsNone) {
  torch::manual_seed(0);
  const auto expected = torch::randn({3, 4, 32});
  const auto factor = [&](const at::Tensor& actual) {
    return compare_tensors(actual, expected).factor;
  };
  EXPECT_EQ(factor(expected + 1), 1.0);
  EXPECT_EQ(factor(torch::randn_like(expected)), 1.0);
  EXPECT_EQ(factor(expected * (1 + 1e-7 * torch::randn_like(expected))), 1.0) << "rounding";
  EXPECT_EQ(factor(expected.nextafter(torch::full_like(expected, kInfinity))), 1.0);
  auto one = expected.clone();
  one[0][0][0] *= 2;
  EXPECT_EQ(factor(one), 1.0);
  EXPECT_EQ(compare_tensors(torch::tensor({2.0f}), torch::tensor({1.0f})).factor, 1.0);
  // Of the largest by far, beside which all others are nothing.
  auto largest = expected.clone();
  largest[0][0][0] = 1e4f;
  auto doubled = largest.clone();
  doubled[0][0][0] *= 2;
  EXPECT_EQ(compare_tensors(doubled, largest).factor, 1.0);
  doubled.slice(0, 1).mul_(1.5);
  EXPECT_EQ(compare_tensors(doubled, largest).factor, 1.0);
}

TEST(CompareTensors, ComparesIntegersAndBooleansExactly) {
  const auto large = torch::tensor({int64_t{1} << 60, int64_t{7}});
  const auto found = compare_tensors(large + torch::tensor({1, 0}), large);
  EXPECT_EQ(found.outside, 1);
  EXPECT_EQ(found.difference, 1) << "not of doubles, which are equal";
  EXPECT_EQ(found.to_string(),
            "1 of 2 elements have other bits\nworst at [0]: got 1152921504606846977, "
            "expected 1152921504606846976, difference 1");
  EXPECT_EQ(text_of(torch::tensor({true, false}), torch::tensor({true, true})),
            "1 of 2 elements have other bits\nworst at [1]: got false, expected true, "
            "difference 1");
}

TEST(CompareTensors, TakesScalarsComplexSparseAndStridedTensors) {
  EXPECT_EQ(compare_tensors(torch::tensor(1.5f), torch::tensor(1.0f)).difference, 0.5);
  const auto z = torch::complex(torch::arange(3.0f), torch::ones({3}));
  const auto found = compare_tensors(
      torch::complex(torch::arange(3.0f), torch::tensor({1., 3., 1.}).to(torch::kFloat)), z);
  EXPECT_EQ(found.worst, (std::vector<int64_t>{1, 1})) << "an imaginary part";
  EXPECT_TRUE(compare_tensors(z.conj().conj(), z).ok);
  EXPECT_FALSE(compare_tensors(z.conj(), z).ok);
  const auto x = torch::eye(3);
  EXPECT_TRUE(compare_tensors(x.to_sparse(), x).ok);
  EXPECT_TRUE(compare_tensors(x.t(), x).ok);
  EXPECT_TRUE(compare_tensors(torch::ones({1}).expand({3}), torch::ones({3})).ok);
}

TEST(CompareTensors, RejectsToleranceThatIsNoTolerance) {
  const auto x = torch::ones({1});
  EXPECT_ERROR(compare_tensors(x, x, Tolerance().atol(-1)), c10::ValueError,
               "[compare_tensors] atol must be finite and not negative. Got -1");
  EXPECT_ERROR(compare_tensors(x, 2 * x, Tolerance().rtol_of_max(kInfinity)), c10::ValueError,
               "Got inf");
  EXPECT_ERROR(compare_tensors(x, x, Tolerance().rtol(kNaN)), c10::ValueError, "Got nan");
}

}  // namespace
}  // namespace posenc
