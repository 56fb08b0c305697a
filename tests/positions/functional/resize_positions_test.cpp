#include "posenc/positions/functional/resize_positions.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/upsampling.h>

#include "support/compare.h"

namespace posenc {
namespace {

namespace F = torch::nn::functional;
using functional::resize_positions;
using testing::bit_equal;

constexpr PositionResize kResizes[] = {
    PositionResize::Bicubic,       PositionResize::BicubicFloat32,
    PositionResize::BicubicOffset, PositionResize::BicubicAntialias,
    PositionResize::BicubicGrow,   PositionResize::BicubicAntialiasKeepEqual,
    PositionResize::Bilinear,      PositionResize::BilinearCrop,
    PositionResize::Nearest,       PositionResize::BilinearAntialias};

// The definition: rows as an image, torch::nn::functional::interpolate, rows again.
torch::Tensor interpolated(const torch::Tensor& table, int64_t side, std::vector<int64_t> size,
                           F::InterpolateFuncOptions::mode_t mode, bool antialias = false) {
  auto how = F::InterpolateFuncOptions().size(size).mode(mode).antialias(antialias);
  if (!std::holds_alternative<torch::enumtype::kNearest>(mode)) how.align_corners(false);
  const auto image = table.reshape({1, side, side, -1}).permute({0, 3, 1, 2});
  return F::interpolate(image, how).permute({0, 2, 3, 1}).reshape({1, size[0] * size[1], -1});
}

TEST(ResizePositions, IsTheInterpolationOfItsRule) {
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    const auto table = torch::randn({1, 16, 5}, dtype);
    const auto single = table.to(torch::kFloat);
    const std::vector<int64_t> size = {6, 3};
    const auto resized = [&](PositionResize rule) { return resize_positions(table, 6, 3, rule); };
    EXPECT_TRUE(
        bit_equal(resized(PositionResize::Bicubic), interpolated(table, 4, size, torch::kBicubic)));
    EXPECT_TRUE(bit_equal(resized(PositionResize::BicubicFloat32),
                          interpolated(single, 4, size, torch::kBicubic).to(dtype)));
    EXPECT_TRUE(bit_equal(resized(PositionResize::BicubicAntialias),
                          interpolated(single, 4, size, torch::kBicubic, true).to(dtype)));
    EXPECT_TRUE(bit_equal(resized(PositionResize::BicubicAntialiasKeepEqual),
                          resized(PositionResize::BicubicAntialias)));
    EXPECT_TRUE(bit_equal(resized(PositionResize::Bilinear),
                          interpolated(table, 4, size, torch::kBilinear)));
    EXPECT_TRUE(bit_equal(resized(PositionResize::BilinearAntialias),
                          interpolated(single, 4, size, torch::kBilinear, true).to(dtype)));
    EXPECT_TRUE(
        bit_equal(resized(PositionResize::Nearest), interpolated(table, 4, size, torch::kNearest)));
    const auto square = interpolated(single, 4, {6, 6}, torch::kBilinear);
    EXPECT_TRUE(bit_equal(resized(PositionResize::BilinearCrop),
                          square.view({6, 6, 5}).slice(1, 0, 3).reshape({1, 18, 5}).to(dtype)));
  }
}

TEST(ResizePositions, RulesDiffer) {
  const auto table = torch::randn({16, 8});
  std::vector<torch::Tensor> results;
  for (const auto rule : kResizes) {
    if (rule != PositionResize::BicubicAntialiasKeepEqual && rule != PositionResize::BicubicFloat32)
      results.push_back(resize_positions(table, 6, 3, rule));
  }
  for (size_t a = 0; a < results.size(); ++a) {
    for (size_t b = 0; b < a; ++b) EXPECT_FALSE(torch::equal(results[a], results[b])) << a << b;
  }
}

TEST(ResizePositions, KeepsThePrefixTheRankAndTheOwnSize) {
  const auto table = torch::randn({19, 4});
  for (const auto rule : kResizes) {
    const auto resized = resize_positions(table, 7, 5, rule, 3);
    ASSERT_EQ(resized.sizes(), (std::vector<int64_t>{38, 4}));
    EXPECT_TRUE(bit_equal(resized.slice(0, 0, 3), table.slice(0, 0, 3)));
    EXPECT_TRUE(bit_equal(resized, resize_positions(table.unsqueeze(0), 7, 5, rule, 3)[0]));
    EXPECT_TRUE(bit_equal(resize_positions(table, 4, 4, rule, 3), table));
  }
}

TEST(ResizePositions, LeavesATableAsItIsWhereTheSystemDoes) {
  const auto kept = [](const torch::Tensor& table, int64_t height, int64_t width,
                       PositionResize rule, int64_t from_height = 0, int64_t from_width = 0) {
    return resize_positions(table, height, width, rule, 0, from_height, from_width)
        .is_alias_of(table);
  };
  const auto square = torch::randn({16, 4}), wide = torch::randn({8, 4});
  EXPECT_TRUE(kept(square, 4, 4, PositionResize::Bicubic));
  EXPECT_FALSE(kept(square, 2, 8, PositionResize::Bicubic));
  EXPECT_TRUE(kept(square, 2, 8, PositionResize::Nearest));
  EXPECT_TRUE(kept(wide, 2, 4, PositionResize::BicubicAntialiasKeepEqual, 2, 4));
  EXPECT_FALSE(kept(wide, 4, 2, PositionResize::BicubicAntialiasKeepEqual, 2, 4));
  EXPECT_FALSE(kept(wide, 2, 4, PositionResize::BicubicAntialias, 2, 4));
  EXPECT_TRUE(kept(wide, 2, 4, PositionResize::Refuse, 2, 4));
}

TEST(ResizePositions, GrowsByFactorsAndTakesTheFirstRowsOtherwise) {
  const auto table = torch::randn({1, 12, 4});  // 3 x 4
  const auto smaller = resize_positions(table, 2, 3, PositionResize::BicubicGrow, 0, 3, 4);
  EXPECT_TRUE(
      bit_equal(smaller, table.view({3, 4, 4}).slice(0, 0, 2).slice(1, 0, 3).reshape({1, 6, 4})));
  const auto image = table.view({1, 3, 4, 4}).permute({0, 3, 1, 2}).slice(3, 0, 2);
  const auto how = F::InterpolateFuncOptions()
                       .scale_factor(std::vector<double>{5.0 / 3.0, 1.0})
                       .mode(torch::kBicubic)
                       .align_corners(false)
                       .recompute_scale_factor(false);
  const auto grown = F::interpolate(image, how).permute({0, 2, 3, 1}).reshape({1, 10, 4});
  EXPECT_TRUE(
      bit_equal(resize_positions(table, 5, 2, PositionResize::BicubicGrow, 0, 3, 4), grown));
}

TEST(ResizePositions, RefusesAFactorThatIsRoundedToAnotherSize) {
  const auto table = torch::randn({1, 49 * 2, 1});
  int64_t refused = 0;
  for (int64_t height = 50; height < 100; ++height) {
    const double rows = 49 * (static_cast<double>(height) / 49.0);
    const auto grow = [&] {
      return resize_positions(table, height, 2, PositionResize::BicubicGrow, 0, 49, 2);
    };
    if (rows >= static_cast<double>(height)) {
      EXPECT_EQ(grow().size(1), 2 * height);
      continue;
    }
    ++refused;
    EXPECT_ERROR(grow(), c10::ValueError, "must give " + std::to_string(height) + "x2 patches");
  }
  EXPECT_GT(refused, 0);
}

TEST(ResizePositions, GradientsFlowToTheWholeTable) {
  for (const auto rule : kResizes) {
    const auto table = torch::randn({1, 11, 3}, torch::kDouble).requires_grad_();
    const auto resized = resize_positions(table, 6, 5, rule, 2);
    resized.sum().backward();
    // Every row of the result is an average of rows, so the gradients sum to the number of rows.
    EXPECT_NEAR(table.grad().sum().item<double>(), 3.0 * 32.0, 1e-3);
    EXPECT_TRUE(table.grad().slice(1, 0, 2).eq(1).all().item<bool>());
  }
}

TEST(ResizePositions, RulesHaveNames) {
  for (const auto rule : kResizes) EXPECT_EQ(position_resize_of(to_string(rule)), rule);
  EXPECT_EQ(position_resize_of("refuse"), PositionResize::Refuse);
  EXPECT_ERROR(position_resize_of("cubic"), c10::ValueError,
               "[position_resize_of] the rule must be one of refuse, bicubic, bicubic_float32, "
               "bicubic_offset, bicubic_antialias, timm, bicubic_grow, bilinear, bilinear_crop, "
               "bilinear_antialias, nearest. Got cubic");
}

TEST(ResizePositions, RefusesWhatItCannotResize) {
  const auto table = torch::randn({10, 4});
  const auto rule = PositionResize::Bicubic;
  EXPECT_ERROR(resize_positions(table.to(torch::kLong), 3, 3, rule), c10::TypeError,
               "[resize_positions] the table must be floating-point. Got Long");
  EXPECT_ERROR(resize_positions(torch::randn({2, 9, 4}), 3, 3, rule), c10::ValueError,
               "[resize_positions] the table must be (R, D) or (1, R, D). Got [2, 9, 4]");
  EXPECT_ERROR(resize_positions(table, 0, 3, rule), c10::ValueError,
               "[resize_positions] height must be positive. Got 0");
  EXPECT_ERROR(resize_positions(table, 3, -1, rule), c10::ValueError,
               "[resize_positions] width must be positive. Got -1");
  EXPECT_ERROR(resize_positions(table, 3, 3, rule, 10), c10::ValueError,
               "[resize_positions] prefix must lie in [0, 10), the rows of the table. Got 10");
  EXPECT_ERROR(resize_positions(table, 3, 3, rule, 0, 2), c10::ValueError,
               "[resize_positions] from_width must be positive. Got 0");
  EXPECT_ERROR(resize_positions(table, 5, 2, rule), c10::ValueError,
               "[resize_positions] the table must have 3x3 positions for patches, the grid that it "
               "is resized from. Got 10");
  EXPECT_ERROR(resize_positions(table, 2, 2, rule, 0, 3, 4), c10::ValueError,
               "the table must have 3x4 positions for patches");
  EXPECT_ERROR(resize_positions(table, 4, 3, PositionResize::Refuse, 1), c10::ValueError,
               "[resize_positions] the positions are those of 3x3 patches, and "
               "PositionResize::Refuse leaves them so. Got 4x3");
}

}  // namespace
}  // namespace posenc
