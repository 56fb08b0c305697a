#include "posenc/sinusoid/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "posenc/sinusoid/preset.h"
#include "posenc/sinusoid/table.h"
#include "support/compare.h"

namespace posenc {
namespace {

TEST(SinusoidOptions, EqualMeansEveryAxis) {
  EXPECT_EQ(SinusoidOptions(8), SinusoidOptions(8));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(10));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).base(100));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).frequency(Frequency::Power));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).phase(Phase::Quotient));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).power_shape(PowerShape::Grid));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).layout(Layout::Halves));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).odd_dim(OddDim::ExtraSin));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).arithmetic(Arithmetic::Float64));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).index(Index::Half));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).divisor(Divisor::Pairs));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).shift(1));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).divisor_at_least_one(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).max_frequency(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).precision(Precision::Exact));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).angle_scale(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).angle_by_length(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).cos_first(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).raw_first(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).rows(Rows::Down));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).start(1));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).step(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).zero_row(0));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).cls_row(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).grid({2, 3}));
  EXPECT_NE(SinusoidOptions(8).grid({2, 3}), SinusoidOptions(8).grid({3, 2}));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).channel_axes({1, 0}));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).axis_depth(AxisDepth::Inner));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).axis_values(AxisValues::OneBased));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).axis_channels(AxisChannels::CeilEven));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).base_size(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).interpolation_scale(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).coordinates({Coordinate{}}));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).post(Post::Standardize));
}

TEST(SinusoidOptions, CountRowsAndChannels) {
  const auto count = [](Rows rows) { return SinusoidOptions(8).rows(rows).row_count(5); };
  EXPECT_EQ(count(Rows::Up), 5);
  EXPECT_EQ(count(Rows::Down), 5);
  EXPECT_EQ(count(Rows::DownFromLength), 6);
  EXPECT_EQ(count(Rows::Relative), 9);
  EXPECT_EQ(count(Rows::RelativeDistance), 9);
  EXPECT_EQ(count(Rows::RelativeEven), 10);
  EXPECT_EQ(SinusoidOptions(8).cls_row(true).row_count(5), 6);
  EXPECT_EQ(SinusoidOptions(7).odd_dim(OddDim::ExtraRow).row_count(5), 6);
  EXPECT_EQ(SinusoidOptions(8).odd_dim(OddDim::ExtraRow).row_count(5), 5);
  const auto width = [](OddDim rule) { return SinusoidOptions(7).odd_dim(rule).channels(); };
  EXPECT_EQ(width(OddDim::ExtraSin), 7);
  EXPECT_EQ(width(OddDim::ZeroColumn), 7);
  EXPECT_EQ(width(OddDim::Truncate), 7);
  EXPECT_EQ(width(OddDim::Widen), 8);
  EXPECT_EQ(width(OddDim::Narrow), 6);
  EXPECT_EQ(width(OddDim::ExtraRow), 6);
  const auto three = SinusoidOptions(32).grid({2, 2, 2}).axis_channels(AxisChannels::QuarterRest);
  EXPECT_EQ(three.axes(), 3);
  EXPECT_EQ(three.axis_widths(), (std::vector<int64_t>{8, 12, 12}));
}

TEST(SinusoidOptions, RejectsWhatNoTableCanHave) {
  EXPECT_ERROR(check(SinusoidOptions(0)), c10::ValueError, "dim must be positive. Got 0");
  EXPECT_ERROR(check(SinusoidOptions(-4)), c10::ValueError, "dim must be positive. Got -4");
  EXPECT_ERROR(check(SinusoidOptions(7)), c10::ValueError, "dim must be even");
  EXPECT_ERROR(check(SinusoidOptions(8).base(0)), c10::ValueError, "base must be positive");
  EXPECT_ERROR(check(SinusoidOptions(8).base(std::numeric_limits<double>::infinity())),
               c10::ValueError, "base must be positive and finite");
  EXPECT_ERROR(check(SinusoidOptions(8).start(std::nan(""))), c10::ValueError, "must be finite");
  EXPECT_ERROR(check(SinusoidOptions(2).divisor(Divisor::Pairs).shift(1)), c10::ValueError,
               "the dimension must be larger");
  EXPECT_ERROR(check(SinusoidOptions(8).grid({2, 0})), c10::ValueError, "must be positive");
  EXPECT_ERROR(check(SinusoidOptions(8).grid({1 << 20, 1 << 20})), c10::ValueError, "2^31 cells");
  EXPECT_ERROR(check(SinusoidOptions(8).grid({2, 2}).channel_axes({1, 1})), c10::ValueError,
               "each axis of the grid once");
  EXPECT_ERROR(check(SinusoidOptions(6).grid({2, 2})), c10::ValueError, "a multiple of 4");
  EXPECT_ERROR(check(SinusoidOptions(8).grid({2, 2}).channel_axes({0})), c10::ValueError,
               "each axis of the grid once. Got 1 of 2");
  EXPECT_ERROR(check(SinusoidOptions(8).grid({2, 2}).channel_axes({0, 2})), c10::ValueError,
               "each axis of the grid once. Got 2");
  EXPECT_ERROR(check(SinusoidOptions(8).grid({2, 2}).coordinates({Coordinate{}})), c10::ValueError,
               "exclude each other");
  EXPECT_ERROR(check(SinusoidOptions(16).grid({2, 2}).axis_channels(AxisChannels::QuarterRest)),
               c10::ValueError, "QuarterRest is for three axes. Got 2");
  EXPECT_NO_THROW(check(SinusoidOptions(7).odd_dim(OddDim::ZeroColumn)));
}

// Columns that overlap, that nothing fills, or that have no frequency: such a table held whatever
// its memory held before.
TEST(SinusoidOptions, RejectsColumnsThatNothingFills) {
  const auto odd = [](Index index) {
    return SinusoidOptions(7).odd_dim(OddDim::ExtraSin).index(index);
  };
  EXPECT_NO_THROW(check(odd(Index::Even)));
  EXPECT_NO_THROW(check(odd(Index::Doubled)));
  EXPECT_ERROR(check(odd(Index::Half)), c10::ValueError,
               "as many frequencies as it has sines and cosines, 4 and 3. Got 3 and 3 for dim 7");
  EXPECT_ERROR(check(odd(Index::Even).frequency(Frequency::Linear)), c10::ValueError,
               "Got 3 and 3");
  EXPECT_ERROR(check(SinusoidOptions(7).odd_dim(OddDim::Widen).index(Index::Paired)),
               c10::ValueError, "4 and 4. Got 4 and 3");
  EXPECT_ERROR(check(SinusoidOptions(8).frequency(Frequency::PowersOfTwo).index(Index::Paired)),
               c10::ValueError, "as many frequencies");
  EXPECT_ERROR(check(odd(Index::Even).cos_first(true)), c10::ValueError, "with the sines first");
  const auto grid = SinusoidOptions(16).grid({2, 2, 2}).axis_channels(AxisChannels::QuarterRest);
  EXPECT_NO_THROW(check(grid));
  for (const auto depth : {AxisDepth::Middle, AxisDepth::Inner}) {
    EXPECT_ERROR(check(SinusoidOptions(grid).axis_depth(depth)), c10::ValueError,
                 "need axes of one even width. Got [4, 6, 6]");
    EXPECT_ERROR(check(SinusoidOptions(6).grid({2, 2}).odd_dim(OddDim::ExtraSin).axis_depth(depth)),
                 c10::ValueError, "need axes of one even width. Got [3, 3]");
  }
  EXPECT_ERROR(check(SinusoidOptions(18).grid({2, 2}).raw_first(true)), c10::ValueError,
               "raw_first is for positions and coordinates. Got a grid");
  EXPECT_ERROR(check(SinusoidOptions(9)
                         .grid({2, 2})
                         .axis_channels(AxisChannels::FloorEven)
                         .odd_dim(OddDim::Truncate)),
               c10::ValueError, "of which there must be as many. Got 8 for dim 9");
}

// Rows are those of positions: a grid has one a cell, whatever they are.
TEST(SinusoidOptions, AGridHasARowACell) {
  const auto plain = SinusoidOptions(8).grid({2, 3});
  for (const auto rows : {Rows::Down, Rows::DownFromLength, Rows::Relative, Rows::RelativeEven}) {
    const auto other = SinusoidOptions(plain).rows(rows);
    EXPECT_EQ(other.row_count(6), 6);
    EXPECT_TRUE(testing::bit_equal(sinusoid_table(other, 6), sinusoid_table(plain, 6)));
  }
}

// The table is as wide as channels() says, which modules rely on.
TEST(SinusoidOptions, CountTheColumnsOfTheTable) {
  for (const int64_t dim : {4, 7, 9, 10}) {
    for (const auto rule : {OddDim::ZeroColumn, OddDim::Truncate}) {
      for (const auto share : {AxisChannels::Equal, AxisChannels::CeilEven}) {
        const auto options = SinusoidOptions(dim).grid({2, 3}).odd_dim(rule).axis_channels(share);
        EXPECT_EQ(sinusoid_table(options, 6).size(1), options.channels()) << dim;
      }
    }
  }
  const auto wide = SinusoidOptions(8), cut = SinusoidOptions(7).odd_dim(OddDim::Truncate);
  EXPECT_TRUE(testing::bit_equal(sinusoid_table(cut, 5), sinusoid_table(wide, 5).slice(1, 0, 7)));
}

TEST(Preset, NamesTheNearestWhenUnknown) {
  EXPECT_ERROR(preset("notebok_001", 8), c10::ValueError, "there is no preset `notebok_001`");
  EXPECT_ERROR(preset("notebok_001", 8), c10::ValueError, "notebook_001");
}

}  // namespace
}  // namespace posenc
