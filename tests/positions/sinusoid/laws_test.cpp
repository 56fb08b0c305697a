// The notebooks' claims about sinusoidal encodings, as laws, corrected where a notebook is wrong.
// The laws hold for every recipe with one axis, so each law is tested with all of them.

#include <gtest/gtest.h>

#include <cmath>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/presets.h"

namespace posenc {
namespace {

constexpr double kPi = 3.14159265358979323846;

// One preset of each recipe, except for two recipes that are not rotations: one pairs a sine and
// cosine of different frequencies, the other uses each frequency twice.
std::vector<std::string> lawful_presets() {
  auto names = testing::plain_presets();
  std::erase_if(names, [](const std::string& name) {
    const sinusoid::Index index = preset(name, 36).index();
    return index == sinusoid::Index::Doubled || index == sinusoid::Index::PairedHalf;
  });
  return names;
}

class Law : public ::testing::Test {
 protected:
  // Tests a law with one preset of each lawful recipe.
  template <typename Body>
  void each(const Body& body) {
    for (const std::string& name : lawful_presets()) {
      SCOPED_TRACE(name);
      name_ = name;
      body();
    }
  }
  SinusoidOptions options(int64_t dim) const { return preset(name_, dim); }
  torch::Tensor table(int64_t dim, int64_t length) const {
    return sinusoid_table(options(dim), length);
  }
  // Sines and cosines of a table's rows, (L, D/2) each, as doubles.
  torch::Tensor sines(const torch::Tensor& table) const { return pick(table, false); }
  torch::Tensor cosines(const torch::Tensor& table) const { return pick(table, true); }

 private:
  torch::Tensor pick(const torch::Tensor& table, bool cosine) const {
    const auto o = options(36);
    const int64_t second = cosine != o.cos_first() ? 1 : 0, half = table.size(1) / 2;
    const auto part = o.layout() == sinusoid::Layout::Interleaved
                          ? table.slice(1, second, table.size(1), 2)
                          : table.slice(1, second * half, (second + 1) * half);
    return part.to(torch::kDouble);
  }

  std::string name_;
};

TEST_F(Law, SquaresSumToOneInEachPair) {
  each([&] {
    const auto rows = table(70, 513);
    const auto sum = sines(rows).square() + cosines(rows).square();
    EXPECT_LT((sum - 1.0).abs().max().item<double>(), 3e-7);  // two float32 roundings
  });
}

TEST_F(Law, FirstRowIsZeroAndOne) {
  each([&] {
    const auto row = table(36, 3)[0];
    EXPECT_TRUE(sines(row.unsqueeze(0)).eq(0.0).all().item<bool>());
    EXPECT_TRUE(cosines(row.unsqueeze(0)).eq(1.0).all().item<bool>());
  });
}

// PE(p + k) = R(k) PE(p), where R(k) rotates each pair by k times its rate.
TEST_F(Law, ShiftIsARotation) {
  each([&] {
    const auto rows = table(38, 400);
    for (const int64_t k : {1, 7, 100}) {
      const auto s = sines(rows).slice(0, 0, 400 - k), c = cosines(rows).slice(0, 0, 400 - k);
      const auto sin_k = sines(rows)[k], cos_k = cosines(rows)[k];
      const auto bound = 400 * 3.0 / (1 << 24) + 1e-6;  // rounding of the angles
      EXPECT_LT((s * cos_k + c * sin_k - sines(rows).slice(0, k)).abs().max().item<double>(),
                bound);
      EXPECT_LT((c * cos_k - s * sin_k - cosines(rows).slice(0, k)).abs().max().item<double>(),
                bound);
    }
  });
}

// From 2 pi at the first pair to 2 pi * base^(1 - 2/D) at the last, or base itself with shift 1:
// they increase with the dimension. (The fourth notebook says that small dimensions have the long
// wavelengths; it is the other way round.)
TEST_F(Law, WavelengthsRiseWithTheDimension) {
  each([&] {
    const int64_t dim = 128;
    const auto angle = torch::atan2(sines(table(dim, 2)), cosines(table(dim, 2)))[1];
    const auto wavelength = 2 * kPi / angle;
    EXPECT_TRUE((wavelength.slice(0, 1) > wavelength.slice(0, 0, -1)).all().item<bool>());
    EXPECT_NEAR(wavelength[0].item<double>(), 2 * kPi, 1e-5);
    const double exponent = options(dim).shift() == 1.0 ? 1.0 : 1.0 - 2.0 / dim;
    const double last = 2 * kPi * std::pow(10000.0, exponent);
    EXPECT_NEAR(wavelength[-1].item<double>() / last, 1.0, 1e-5);
  });
}

TEST_F(Law, EveryPositionHasItsOwnRow) {
  each([&] {
    const auto rows = table(18, 2000);
    EXPECT_EQ(std::get<0>(torch::unique_dim(rows, 0)).size(0), 2000);
  });
}

// sin and cos are orthogonal over a period: the integral of their product is zero. With N
// equidistant real positions over one period, the mean equals the integral up to rounding.
TEST_F(Law, SineAndCosineAreOrthogonalOverAPeriod) {
  each([&] {
    const int64_t n = 4096;
    const auto positions = torch::arange(n, torch::kDouble) * (2 * kPi / n);
    const auto rows = sinusoid_rows(options(4), positions);
    const auto s = sines(rows).select(1, 0), c = cosines(rows).select(1, 0);  // wavelength 2 pi
    EXPECT_LT(std::abs((s * c).mean().item<double>()), 1e-7);
    EXPECT_NEAR(s.square().mean().item<double>(), 0.5, 1e-7);
    EXPECT_NEAR(c.square().mean().item<double>(), 0.5, 1e-7);
  });
}

TEST_F(Law, DotProductDependsOnTheDistanceAlone) {
  each([&] {
    const auto rows = table(96, 200).to(torch::kDouble);
    const auto product = rows.matmul(rows.t());
    for (const int64_t k : {0, 1, 13, 50}) {
      const auto diagonal = product.diagonal(k);
      EXPECT_LT((diagonal.max() - diagonal.min()).item<double>(), 2e-3) << "distance " << k;
    }
  });
}

}  // namespace
}  // namespace posenc
