#include "posenc/positions/sinusoid/positions.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/compare.h"
#include "support/devices.h"

namespace posenc {
namespace {

class Positions : public testing::OnEachDevice {
 protected:
  torch::Tensor there(const torch::Tensor& t) const { return t.to(device()); }
};
POSENC_ON_EACH_DEVICE(Positions);

#define EXPECT_POSITIONS(actual, ...) EXPECT_TRUE((actual).cpu().equal(torch::tensor(__VA_ARGS__)))

TEST_P(Positions, CountFromOffsets) {
  const torch::TensorOptions on(device());
  EXPECT_POSITIONS(positions_from_offset(3, 5, on), {5, 6, 7});
  EXPECT_EQ(positions_from_offset(3, 5, on).device(), device());
  EXPECT_EQ(positions_from_offset(0).numel(), 0);
  const auto each = positions_from_offsets(there(torch::tensor({7, 0}, torch::kInt)), 2);
  EXPECT_POSITIONS(each, {{7, 8}, {0, 1}});
}

// The rule of fairseq's utils.make_positions, computed by hand.
TEST_P(Positions, FollowFairseqsPaddingRule) {
  const auto ids = there(torch::tensor({{5, 6, 1, 7, 1}, {1, 1, 9, 9, 9}}));
  EXPECT_POSITIONS(positions_from_ids(ids, 1), {{2, 3, 1, 4, 1}, {1, 1, 2, 3, 4}});
  EXPECT_POSITIONS(positions_from_ids(ids, 1, 10), {{12, 13, 1, 14, 1}, {1, 1, 12, 13, 14}});
  EXPECT_POSITIONS(positions_from_ids(ids, 0), {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}});
}

TEST_P(Positions, CountTokensThroughPaddingOnEitherSide) {
  const auto mask = there(torch::tensor({{false, false, true, true}, {true, true, false, false}}));
  EXPECT_POSITIONS(positions_from_mask(mask), {{0, 0, 0, 1}, {0, 1, 0, 0}});
  EXPECT_POSITIONS(positions_from_mask(mask, 1), {{1, 1, 0, 1}, {0, 1, 1, 1}});
}

// Hugging Face's attention_mask is of integers. OPT numbers from 0, masked tokens get -1, and its
// table begins two rows before.
TEST_P(Positions, MayCountOptsWay) {
  const auto mask = there(torch::tensor({{1, 0, 1, 1}, {0, 0, 2, 1}, {0, 0, 0, 0}}, torch::kLong));
  const auto opt = there(torch::tensor({{0, -1, 1, 2}, {-1, -1, 0, 1}, {-1, -1, -1, -1}}));
  for (const auto dtype : {torch::kLong, torch::kInt, torch::kShort, torch::kUInt8, torch::kBool}) {
    EXPECT_TRUE(positions_from_mask(mask.to(dtype), -1).equal(opt)) << dtype;
    EXPECT_TRUE(positions_from_mask(mask.to(dtype), 1, 2).equal(opt + 2)) << dtype;
  }
}

// The loops give the results of ATen's cumsum, which is used for other layouts.
TEST_P(Positions, DependOnNoLayout) {
  const auto ids = there(torch::tensor({{5, 1, 7, 7}, {1, 1, 0, 3}, {1, 1, 1, 1}}));
  const auto strided = [](const torch::Tensor& x) { return x.t().contiguous().t(); };
  for (const auto dtype : {torch::kLong, torch::kInt, torch::kShort}) {
    const auto some = ids.to(dtype);
    EXPECT_POSITIONS(positions_from_ids(some, 1), {{2, 1, 3, 4}, {1, 1, 2, 3}, {1, 1, 1, 1}});
    EXPECT_TRUE(positions_from_ids(strided(some), 1).equal(positions_from_ids(some, 1)));
    EXPECT_TRUE(positions_from_ids(strided(some), 1, 5).equal(positions_from_ids(some, 1, 5)));
    EXPECT_TRUE(positions_from_mask(strided(some), 4, 2).equal(positions_from_mask(some, 4, 2)));
  }
  EXPECT_POSITIONS(positions_from_ids(ids[0], 1), {2, 1, 3, 4});
  EXPECT_EQ(positions_from_ids(torch::zeros({2, 0}, torch::kLong), 1).numel(), 0);
}

TEST_P(Positions, StartAnewInEachPackedSequence) {
  const auto lengths = there(torch::tensor({3, 0, 2}));
  EXPECT_POSITIONS(positions_from_lengths(lengths), {0, 1, 2, 0, 1});
  EXPECT_POSITIONS(positions_from_lengths(lengths, 2), {2, 3, 4, 2, 3});
}

TEST_P(Positions, RunBackwardsAndBothWays) {
  const torch::TensorOptions on(device());
  EXPECT_POSITIONS(reversed_positions(3, on), {2, 1, 0});
  EXPECT_POSITIONS(relative_positions(3, on), {2, 1, 0, -1, -2});
}

TEST_P(Positions, MayBeReal) {
  const auto times = real_positions(3, 0.5, 0.25, torch::TensorOptions(device()));
  EXPECT_TRUE(times.cpu().equal(torch::tensor({0.5, 0.75, 1.0}, torch::kDouble)));
  EXPECT_EQ(real_positions(2, 0, 1, torch::kFloat).scalar_type(), torch::kFloat);
}

TEST(PositionsErrors, NameTheRuleAndTheValue) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_ERROR(positions_from_offset(-1), c10::ValueError, "length must be at least 0. Got -1");
  EXPECT_ERROR(positions_from_offsets(torch::tensor({{1}}), 2), c10::ValueError,
               "offsets must be (B). Got [1, 1]");
  EXPECT_ERROR(positions_from_offsets(torch::tensor({0.5}), 2), c10::TypeError,
               "offsets must be integers. Got Float");
  EXPECT_ERROR(positions_from_ids(torch::tensor({0.5}), 1), c10::TypeError, "ids must be integers");
  EXPECT_ERROR(positions_from_ids(torch::tensor({1}), 1, -2), c10::ValueError,
               "past must not be negative. Got -2");
  EXPECT_ERROR(positions_from_mask(torch::tensor({1.0})), c10::TypeError,
               "mask must be boolean or integers, nonzero for a token. Got Float");
  EXPECT_ERROR(positions_from_mask(torch::tensor(true)), c10::ValueError, "mask must be (..., L)");
  EXPECT_ERROR(positions_from_lengths(torch::tensor({{1}})), c10::ValueError, "must be (N)");
  EXPECT_ERROR(relative_positions(0), c10::ValueError, "length must be at least 1. Got 0");
  EXPECT_ERROR(real_positions(3, nan, 1), c10::ValueError, "must be finite. Got nan");
}

}  // namespace
}  // namespace posenc
