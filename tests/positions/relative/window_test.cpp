#include "posenc/positions/relative/window.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "posenc/positions/relative/alibi.h"
#include "posenc/positions/relative/resize.h"
#include "support/compare.h"

namespace posenc {
namespace {

using relative::Grid;
using relative::LogCoordinates;
using relative::Resize;
using testing::bit_equal;

TEST(RelativeWindow, HasARowForEachPairOfDifferences) {
  const auto index = relative_window_index({2, 3});
  ASSERT_EQ(index.sizes(), at::IntArrayRef({6, 6}));
  // Differences of rows -1 ... 1 and of columns -2 ... 2.
  for (int64_t i = 0; i < 6; ++i)
    for (int64_t j = 0; j < 6; ++j)
      EXPECT_EQ(index[i][j].item<int64_t>(), (i / 3 - j / 3 + 1) * 5 + (i % 3 - j % 3 + 2));
}

TEST(RelativeWindow, HasThreeRowsForAClassToken) {
  const auto index = relative_window_index({2, 3}, /*class_token=*/true);
  EXPECT_TRUE(bit_equal(index.slice(0, 1).slice(1, 1).contiguous(), relative_window_index({2, 3})));
  EXPECT_EQ(index[0][1].item<int64_t>(), 15);
  EXPECT_EQ(index[1][0].item<int64_t>(), 16);
  EXPECT_EQ(index[0][0].item<int64_t>(), 17);
}

TEST(RelativeWindow, OfAbsoluteDifferencesKeepsEveryStride) {
  const auto index = relative_distance_index({3, 4}, 2);
  ASSERT_EQ(index.sizes(), at::IntArrayRef({4, 12}));
  for (int64_t q = 0; q < 4; ++q)
    for (int64_t k = 0; k < 12; ++k)
      EXPECT_EQ(index[q][k].item<int64_t>(),
                std::abs(q / 2 * 2 - k / 4) * 4 + std::abs(q % 2 * 2 - k % 4));
}

TEST(RelativeWindow, MasksWhatWereNoNeighbours) {
  const auto mask = shifted_window_mask({4, 4}, 2, 1);
  ASSERT_EQ(mask.sizes(), at::IntArrayRef({4, 4, 4}));
  EXPECT_EQ(mask[0].abs().max().item<float>(), 0) << "a window that the roll leaves whole";
  // The second window's columns were at both ends of the grid.
  EXPECT_EQ(mask[1][0][1].item<float>(), -100);
  EXPECT_EQ(mask[1][0][2].item<float>(), 0);
  EXPECT_EQ(shifted_window_mask({4, 4}, 2, 1, torch::kBFloat16).scalar_type(), torch::kBFloat16);
}

TEST(RelativeWindow, Errors) {
  EXPECT_ERROR(relative_window_index({0, 3}), c10::ValueError, "a window must have positive sides");
  EXPECT_ERROR(relative_window_index({int64_t{1} << 40, int64_t{1} << 40}), c10::ValueError,
               "at most 16777216 patches");
  EXPECT_ERROR(relative_distance_index({2, 2}, 0), c10::ValueError, "stride must be positive");
  EXPECT_ERROR(shifted_window_mask({4, 4}, 2, 2), c10::ValueError, "shift must lie in (0, 2)");
  EXPECT_ERROR(shifted_window_mask({4, 5}, 2, 1), c10::ValueError, "must be multiples of 2");
  EXPECT_ERROR(relative_log_coordinates({1, 3}, LogCoordinates::TimmSwin), c10::ValueError,
               "must be larger than 1");
  EXPECT_EQ(relative_log_coordinates({1, 3}, LogCoordinates::TimmSwinV2)
                .select(-1, 0)
                .abs()
                .max()
                .item<float>(),
            0);
  EXPECT_EQ(relative_log_coordinates({1, 1}, LogCoordinates::SwinV2).abs().max().item<float>(), 0);
}

TEST(RelativeTable, OfTheSameWindowIsUnchanged) {
  const auto table = torch::randn({3 * 3 + 3, 2});
  EXPECT_TRUE(
      bit_equal(resize_relative_table(table, {2, 2}, {2, 2}, Resize::GeometricLinear, 3), table));
  EXPECT_TRUE(bit_equal(resize_relative_table(table, {2, 2}, {2, 2}, Resize::BilinearTransposed, 3),
                        table));
}

TEST(RelativeTable, KeepsItsOtherRowsAndItsMiddle) {
  const auto table = torch::randn({5 * 3 + 3, 2});
  for (const Resize rule : {Resize::GeometricLinear, Resize::BilinearTransposed}) {
    const auto resized = resize_relative_table(table, {3, 2}, {4, 6}, rule, 3);
    ASSERT_EQ(resized.size(0), 7 * 11 + 3);
    EXPECT_TRUE(bit_equal(resized.slice(0, 77), table.slice(0, 15)));
  }
  const auto resized = resize_relative_table(table, {3, 2}, {4, 6}, Resize::GeometricLinear, 3);
  EXPECT_TRUE(bit_equal(resized[77 / 2], table[15 / 2])) << "the row of distance 0";
}

TEST(RelativeTable, Errors) {
  EXPECT_ERROR(resize_relative_table(torch::zeros({9, 2}), {3, 2}, {2, 2}, Resize::GeometricLinear),
               c10::ValueError, "must have 15 rows");
  EXPECT_ERROR(resize_relative_table(torch::zeros({9, 2}, torch::kLong), {2, 2}, {2, 2},
                                     Resize::GeometricLinear),
               c10::TypeError, "must be floating-point");
  EXPECT_ERROR(resize_relative_axis(torch::zeros({9, 2}), 0), c10::ValueError,
               "length must be positive");
}

TEST(Alibi, HasTheSlopesOfThePaper) {
  const auto slopes = alibi_slopes(8);
  for (int64_t h = 0; h < 8; ++h) EXPECT_EQ(slopes[h].item<float>(), std::ldexp(1.0F, -1 - h)) << h;
  EXPECT_TRUE(bit_equal(alibi_slopes(8, relative::Slopes::Mpt), slopes));
  EXPECT_TRUE(bit_equal(alibi_slopes(8, relative::Slopes::XTransformers), slopes));
  // Beyond a power of two: every second slope of twice as many, first or last.
  EXPECT_EQ(alibi_slopes(3)[2].item<float>(), alibi_slopes(4)[0].item<float>());
  EXPECT_EQ(alibi_slopes(3, relative::Slopes::Mpt)[0].item<float>(),
            alibi_slopes(4)[1].item<float>());
}

TEST(Alibi, CountsTokensAndNotPadding) {
  const auto mask = torch::tensor({{0, 0, 1, 1, 1}, {1, 1, 0, 0, 0}}, torch::kLong);
  EXPECT_TRUE(bit_equal(alibi_positions(mask),
                        torch::tensor({{0, 0, 0, 1, 2}, {0, 1, 0, 0, 0}}, torch::kLong)));
  EXPECT_ERROR(alibi_positions(mask.to(torch::kFloat)), c10::TypeError, "bool or integers");
  EXPECT_ERROR(alibi_slopes(0), c10::ValueError, "heads must be positive");
  EXPECT_ERROR(alibi_slopes(int64_t{1} << 62), c10::ValueError, "at most 16777216");
  EXPECT_ERROR(alibi_slopes(4, relative::Slopes::Mpt, 0), c10::ValueError,
               "bias_max must be positive");
}

}  // namespace
}  // namespace posenc
