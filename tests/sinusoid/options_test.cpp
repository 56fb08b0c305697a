#include "posenc/sinusoid/options.h"

#include <gtest/gtest.h>

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
  EXPECT_NE(SinusoidOptions(8), SinusoidOptions(8).arithmetic(torch::kDouble));
}

TEST(SinusoidOptions, RejectsWhatNoTableCanHave) {
  EXPECT_ERROR(check(SinusoidOptions(0)), c10::ValueError, "dim must be positive. Got 0");
  EXPECT_ERROR(check(SinusoidOptions(-4)), c10::ValueError, "dim must be positive. Got -4");
  EXPECT_ERROR(check(SinusoidOptions(7)), c10::ValueError, "dim must be even");
  EXPECT_ERROR(check(SinusoidOptions(8).base(0)), c10::ValueError, "base must be positive");
  EXPECT_ERROR(check(SinusoidOptions(8).base(std::numeric_limits<double>::infinity())),
               c10::ValueError, "base must be positive and finite");
  EXPECT_ERROR(check(SinusoidOptions(8).arithmetic(torch::kHalf)), c10::ValueError,
               "arithmetic must be float32 or float64");
  EXPECT_NO_THROW(check(SinusoidOptions(7).odd_dim(OddDim::ZeroColumn)));
}

TEST(Preset, NamesTheNearestWhenUnknown) {
  EXPECT_ERROR(preset("notebok_001", 8), c10::ValueError, "there is no preset `notebok_001`");
  EXPECT_ERROR(preset("notebok_001", 8), c10::ValueError, "notebook_001");
}

TEST(Preset, EveryOneMakesATable) {
  ASSERT_FALSE(presets().empty());
  for (const Preset& entry : presets()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(entry.source.empty());
    EXPECT_EQ(sinusoid_table(preset(entry.name, 18), 5).sizes(), (std::vector<int64_t>{5, 18}));
  }
}

}  // namespace
}  // namespace posenc
