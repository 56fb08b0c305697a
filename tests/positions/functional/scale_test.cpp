#include "posenc/positions/scale.h"

#include <gtest/gtest.h>

namespace posenc {
namespace {

TEST(Scale, KnowsItsFactor) {
  EXPECT_TRUE(Scale::None.is_none());
  EXPECT_DOUBLE_EQ(Scale::None.factor(512), 1.0);
  EXPECT_TRUE(Scale::SqrtDim.is_sqrt_dim());
  EXPECT_DOUBLE_EQ(Scale::SqrtDim.factor(512), std::pow(512.0, 0.5));
  EXPECT_DOUBLE_EQ(Scale(0.25).factor(512), 0.25);
  EXPECT_FALSE(Scale(1.0).is_none());
}

}  // namespace
}  // namespace posenc
