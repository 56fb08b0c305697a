#include "posenc/positions/sinusoid/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/compare.h"

namespace posenc {
namespace {

TEST(SinusoidOptions, EqualMeansEveryAxis) {
  EXPECT_EQ(SinusoidOptions(8), SinusoidOptions(8));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(10));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).base(100));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).frequency(sinusoid::Frequency::Power));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).phase(sinusoid::Phase::Quotient));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).power_shape(sinusoid::PowerShape::Grid));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).layout(sinusoid::Layout::Halves));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).odd_dim(sinusoid::OddDim::ExtraSin));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).arithmetic(sinusoid::Arithmetic::Float64));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).index(sinusoid::Index::Half));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).divisor(sinusoid::Divisor::Pairs));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).shift(1));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).divisor_at_least_one(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).max_frequency(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).min_period(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).precision(Precision::Exact));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).angle_scale(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).angle_by_length(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).cos_first(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).raw_first(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).position_range(sinusoid::PositionRange::Down));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).start(1));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).step(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).zero_row(0));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).cls_row(true));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).grid({2, 3}));
  EXPECT_NE(SinusoidOptions(8).grid({2, 3}), SinusoidOptions(8).grid({3, 2}));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).channel_axes({1, 0}));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).axis_depth(sinusoid::AxisDepth::Inner));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).axis_values(sinusoid::AxisValues::OneBased));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).axis_channels(sinusoid::AxisChannels::CeilEven));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).base_size(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).interpolation_scale(2));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).coordinates({sinusoid::Coordinate{}}));
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).post(sinusoid::Post::Standardize));
}

TEST(SinusoidOptions, CountRowsAndChannels) {
  const auto count = [](sinusoid::PositionRange range) {
    return SinusoidOptions(8).position_range(range).row_count(5);
  };
  EXPECT_EQ(count(sinusoid::PositionRange::Up), 5);
  EXPECT_EQ(count(sinusoid::PositionRange::Down), 5);
  EXPECT_EQ(count(sinusoid::PositionRange::DownFromLength), 6);
  EXPECT_EQ(count(sinusoid::PositionRange::Relative), 9);
  EXPECT_EQ(count(sinusoid::PositionRange::RelativeDistance), 9);
  EXPECT_EQ(count(sinusoid::PositionRange::RelativeEven), 10);
  EXPECT_EQ(SinusoidOptions(8).cls_row(true).row_count(5), 6);
  EXPECT_EQ(SinusoidOptions(7).odd_dim(sinusoid::OddDim::ExtraRow).row_count(5), 6);
  EXPECT_EQ(SinusoidOptions(8).odd_dim(sinusoid::OddDim::ExtraRow).row_count(5), 5);
  const auto width = [](sinusoid::OddDim rule) {
    return SinusoidOptions(7).odd_dim(rule).channels();
  };
  EXPECT_EQ(width(sinusoid::OddDim::ExtraSin), 7);
  EXPECT_EQ(width(sinusoid::OddDim::ZeroColumn), 7);
  EXPECT_EQ(width(sinusoid::OddDim::Truncate), 7);
  EXPECT_EQ(width(sinusoid::OddDim::Widen), 8);
  EXPECT_EQ(width(sinusoid::OddDim::Narrow), 6);
  EXPECT_EQ(width(sinusoid::OddDim::ExtraRow), 6);
  const auto three =
      SinusoidOptions(32).grid({2, 2, 2}).axis_channels(sinusoid::AxisChannels::QuarterRest);
  EXPECT_EQ(three.axes(), 3);
  EXPECT_EQ(three.axis_widths(), (std::vector<int64_t>{8, 12, 12}));
}

TEST(SinusoidOptions, RejectsAPeriodThatIsNotPositive) {
  const auto periods = SinusoidOptions(8).frequency(sinusoid::Frequency::Periods);
  for (const double period : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_ERROR(SinusoidOptions(periods).min_period(period).validate(), c10::ValueError,
                 "min_period must be positive and finite");
  }
}

TEST(SinusoidOptions, RejectsWhatNoTableCanHave) {
  EXPECT_ERROR(SinusoidOptions(0).validate(), c10::ValueError, "dim must be positive. Got 0");
  EXPECT_ERROR(SinusoidOptions(-4).validate(), c10::ValueError, "dim must be positive. Got -4");
  EXPECT_ERROR(SinusoidOptions(7).validate(), c10::ValueError, "dim must be even");
  EXPECT_ERROR(SinusoidOptions(8).base(0).validate(), c10::ValueError, "base must be positive");
  EXPECT_ERROR(SinusoidOptions(8).base(std::numeric_limits<double>::infinity()).validate(),
               c10::ValueError, "base must be positive and finite");
  EXPECT_ERROR(SinusoidOptions(8).start(std::nan("")).validate(), c10::ValueError,
               "must be finite");
  EXPECT_ERROR(SinusoidOptions(2).divisor(sinusoid::Divisor::Pairs).shift(1).validate(),
               c10::ValueError, "the dimension must be larger");
  EXPECT_ERROR(SinusoidOptions(8).grid({2, 0}).validate(), c10::ValueError, "must be positive");
  EXPECT_ERROR(SinusoidOptions(8).grid({1 << 20, 1 << 20}).validate(), c10::ValueError,
               "2^31 cells");
  EXPECT_ERROR(SinusoidOptions(8).grid({2, 2}).channel_axes({1, 1}).validate(), c10::ValueError,
               "each axis of the grid once");
  EXPECT_ERROR(SinusoidOptions(6).grid({2, 2}).validate(), c10::ValueError, "a multiple of 4");
  EXPECT_ERROR(SinusoidOptions(8).grid({2, 2}).channel_axes({0}).validate(), c10::ValueError,
               "each axis of the grid once. Got 1 of 2");
  EXPECT_ERROR(SinusoidOptions(8).grid({2, 2}).channel_axes({0, 2}).validate(), c10::ValueError,
               "each axis of the grid once. Got 2");
  EXPECT_ERROR(SinusoidOptions(8).grid({2, 2}).coordinates({sinusoid::Coordinate{}}).validate(),
               c10::ValueError, "exclude each other");
  EXPECT_ERROR(SinusoidOptions(16)
                   .grid({2, 2})
                   .axis_channels(sinusoid::AxisChannels::QuarterRest)
                   .validate(),
               c10::ValueError, "QuarterRest is for three axes. Got 2");
  EXPECT_NO_THROW(SinusoidOptions(7).odd_dim(sinusoid::OddDim::ZeroColumn).validate());
}

// Columns that overlap, are never written, or have no frequency: such a table used to contain
// uninitialised memory.
TEST(SinusoidOptions, RejectsColumnsThatNothingFills) {
  const auto odd = [](sinusoid::Index index) {
    return SinusoidOptions(7).odd_dim(sinusoid::OddDim::ExtraSin).index(index);
  };
  EXPECT_NO_THROW(odd(sinusoid::Index::Even).validate());
  EXPECT_NO_THROW(odd(sinusoid::Index::Doubled).validate());
  EXPECT_ERROR(odd(sinusoid::Index::Half).validate(), c10::ValueError,
               "as many frequencies as it has sines and cosines, 4 and 3. Got 3 and 3 for dim 7");
  EXPECT_ERROR(odd(sinusoid::Index::Even).frequency(sinusoid::Frequency::Linear).validate(),
               c10::ValueError, "Got 3 and 3");
  EXPECT_ERROR(
      SinusoidOptions(7).odd_dim(sinusoid::OddDim::Widen).index(sinusoid::Index::Paired).validate(),
      c10::ValueError, "4 and 4. Got 4 and 3");
  EXPECT_ERROR(SinusoidOptions(8)
                   .frequency(sinusoid::Frequency::PowersOfTwo)
                   .index(sinusoid::Index::Paired)
                   .validate(),
               c10::ValueError, "as many frequencies");
  EXPECT_ERROR(odd(sinusoid::Index::Even).cos_first(true).validate(), c10::ValueError,
               "with the sines first");
  const auto grid =
      SinusoidOptions(16).grid({2, 2, 2}).axis_channels(sinusoid::AxisChannels::QuarterRest);
  EXPECT_NO_THROW(grid.validate());
  for (const auto depth : {sinusoid::AxisDepth::Middle, sinusoid::AxisDepth::Inner}) {
    EXPECT_ERROR(SinusoidOptions(grid).axis_depth(depth).validate(), c10::ValueError,
                 "need axes of one even width. Got [4, 6, 6]");
    EXPECT_ERROR(SinusoidOptions(6)
                     .grid({2, 2})
                     .odd_dim(sinusoid::OddDim::ExtraSin)
                     .axis_depth(depth)
                     .validate(),
                 c10::ValueError, "need axes of one even width. Got [3, 3]");
  }
  EXPECT_ERROR(SinusoidOptions(18).grid({2, 2}).raw_first(true).validate(), c10::ValueError,
               "raw_first is for positions and coordinates. Got a grid");
  EXPECT_ERROR(SinusoidOptions(9)
                   .grid({2, 2})
                   .axis_channels(sinusoid::AxisChannels::FloorEven)
                   .odd_dim(sinusoid::OddDim::Truncate)
                   .validate(),
               c10::ValueError, "of which there must be as many. Got 8 for dim 9");
}

// A grid has one row per cell, whatever the range of positions.
TEST(SinusoidOptions, AGridHasOneRowPerCell) {
  const auto plain = SinusoidOptions(8).grid({2, 3});
  for (const auto range :
       {sinusoid::PositionRange::Down, sinusoid::PositionRange::DownFromLength,
        sinusoid::PositionRange::Relative, sinusoid::PositionRange::RelativeEven}) {
    const auto other = SinusoidOptions(plain).position_range(range);
    EXPECT_EQ(other.row_count(6), 6);
    EXPECT_TRUE(testing::bit_equal(sinusoid_table(other, 6), sinusoid_table(plain, 6)));
  }
}

// The table has channels() columns, which modules rely on.
TEST(SinusoidOptions, CountTheColumnsOfTheTable) {
  for (const int64_t dim : {4, 7, 9, 10}) {
    for (const auto rule : {sinusoid::OddDim::ZeroColumn, sinusoid::OddDim::Truncate}) {
      for (const auto share : {sinusoid::AxisChannels::Equal, sinusoid::AxisChannels::CeilEven}) {
        const auto options = SinusoidOptions(dim).grid({2, 3}).odd_dim(rule).axis_channels(share);
        EXPECT_EQ(sinusoid_table(options, 6).size(1), options.channels()) << dim;
      }
    }
  }
  const auto wide = SinusoidOptions(8),
             cut = SinusoidOptions(7).odd_dim(sinusoid::OddDim::Truncate);
  EXPECT_TRUE(testing::bit_equal(sinusoid_table(cut, 5), sinusoid_table(wide, 5).slice(1, 0, 7)));
}

TEST(Preset, NamesTheNearestWhenUnknown) {
  EXPECT_ERROR(preset("notebok_001", 8), c10::ValueError, "there is no preset `notebok_001`");
  EXPECT_ERROR(preset("notebok_001", 8), c10::ValueError, "notebook_001");
}

}  // namespace
}  // namespace posenc
