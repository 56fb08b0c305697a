#include "parity/program/difference.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

namespace posenc::testing {
namespace {

using parity::difference;
using parity::Difference;

at::Tensor numbers(const std::vector<double>& values, at::ScalarType type = torch::kFloat) {
  return torch::tensor(values, torch::kDouble).to(type);
}

void expect(const Difference& got, bool equal, double max_abs, double max_ulp) {
  EXPECT_EQ(got.equal, equal);
  EXPECT_EQ(got.max_abs, max_abs);
  EXPECT_EQ(got.max_ulp, max_ulp);
}

TEST(DifferenceOf, CountsRepresentableNumbersInBetween) {
  const float next = std::nextafter(1.0F, 2.0F), tiny = std::numeric_limits<float>::denorm_min();
  expect(difference(numbers({1, 2}), numbers({1, 2})), true, 0, 0);
  expect(difference(numbers({1, 2}), numbers({next, 2})), false, next - 1.0F, 1);
  expect(difference(numbers({-1, 2}), numbers({-next, 2})), false, next - 1.0F, 1);
  expect(difference(numbers({tiny}), numbers({-tiny})), false, 2.0 * tiny, 2);  // across both zeros
  expect(difference(numbers({0.0}), numbers({-0.0})), false, 0, 0);  // the bits differ anyway
  for (const auto& [type, last] : {std::pair(torch::kBFloat16, 0x1p-7), {torch::kHalf, 0x1p-10}}) {
    expect(difference(numbers({1, 3}, type), numbers({1 + last, 3}, type)), false, last, 1);
  }
  // The distance between ordinals of float64 exceeds int64.
  EXPECT_NEAR(
      difference(numbers({-1e300}, torch::kDouble), numbers({1e300}, torch::kDouble)).max_ulp,
      2.0 * static_cast<double>(0x7E37E43C8800759CL), 1e4);
  expect(difference(torch::tensor({1, 5}), torch::tensor({1, 8})), false, 3, 0);
}

TEST(DifferenceOf, NaNAndInfinityAndShapes) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  expect(difference(numbers({nan, inf, -inf}), numbers({nan, inf, -inf})), true, 0, 0);
  const auto one = difference(numbers({nan, 1}), numbers({1, 1}));
  EXPECT_TRUE(!one.equal && std::isnan(one.max_abs) && std::isnan(one.max_ulp));
  const auto other_bits = torch::tensor({0x7fc00001}, torch::kInt).view(torch::kFloat);
  const auto nans = difference(numbers({nan}), other_bits);
  EXPECT_TRUE(!nans.equal && std::isnan(nans.max_abs) && std::isnan(nans.max_ulp));
  const auto mixed = difference(numbers({inf, nan}), numbers({1, 1}));
  EXPECT_TRUE(!mixed.equal && std::isnan(mixed.max_abs) && std::isnan(mixed.max_ulp));
  const auto shapes = difference(torch::zeros({2, 3}), torch::zeros({3, 2}));
  EXPECT_TRUE(!shapes.equal && std::isnan(shapes.max_abs));
  EXPECT_EQ(shapes.why, "float32 (2, 3) and float32 (3, 2)");
  EXPECT_EQ(difference(torch::zeros({1}), torch::zeros({1}, torch::kHalf)).why,
            "float32 (1) and float16 (1)");
  const auto both = worst(difference(numbers({1}), numbers({3})), one);
  EXPECT_TRUE(!both.equal && std::isnan(both.max_abs));
  expect(worst(difference(numbers({1}), numbers({3})), {}), false, 2, 1 << 23 | 1 << 22);
}

TEST(ShortNumber, IsWholeOrHasTwoPlaces) {
  EXPECT_EQ(parity::short_number(0), "0");
  EXPECT_EQ(parity::short_number(9999999), "9999999");
  EXPECT_EQ(parity::short_number(1e7), "1e+07");
  EXPECT_EQ(parity::short_number(3.14e-5), "3.1e-05");
  EXPECT_EQ(parity::short_number(std::nan("")), "nan");
}

}  // namespace
}  // namespace posenc::testing
