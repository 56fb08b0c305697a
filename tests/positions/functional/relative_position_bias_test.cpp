#include "posenc/positions/functional/relative_position_bias.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

using functional::relative_position_bias;
using functional::relative_position_buckets;
using functional::RelativePositionFuncOptions;
using testing::bit_equal;
using testing::Op;
using testing::within;

// The smallest distance of each bucket, according to T5Attention._relative_position_bucket of
// transformers 5.23, for distances below 600.
struct RelativeBuckets {
  int64_t num_buckets, max_distance;
  bool bidirectional;
  std::vector<int64_t> first;
};
const RelativeBuckets kRelativeBuckets[] = {
    {32, 128, true, {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91}},
    {32, 128, false, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                      16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113}},
    {32, 20, true, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 18}},
    {64, 800, true, {0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,  12,  13,  14, 15,
                     16, 21, 27, 34, 43, 55, 70, 89, 114, 145, 185, 236, 301, 385, 491}},
    {10, 50, false, {0, 1, 2, 3, 4, 5, 8, 13, 20, 32}},
    {6, 7, true, {0, 1, 3}},
};

TEST(RelativePositionBias, HasTheBucketsOfTransformers) {
  constexpr int64_t kLength = 600;
  const auto positions = torch::arange(kLength);
  const auto relative = positions.unsqueeze(0) - positions.unsqueeze(1);
  for (const RelativeBuckets& row : kRelativeBuckets) {
    SCOPED_TRACE(row.max_distance);
    const auto bucket_of = [&](int64_t distance) {
      const auto after = std::upper_bound(row.first.begin(), row.first.end(), distance);
      return static_cast<int64_t>(after - row.first.begin()) - 1;
    };
    auto expected = torch::empty({kLength, kLength}, torch::kLong);
    for (int64_t i = 0; i < kLength; ++i)
      for (int64_t j = 0; j < kLength; ++j) {
        const int64_t before = bucket_of(std::max<int64_t>(0, i - j));
        const int64_t after = row.bidirectional ? row.num_buckets / 2 + bucket_of(j - i) : 0;
        expected.data_ptr<int64_t>()[i * kLength + j] = j > i ? after : before;
      }
    const auto options = RelativePositionFuncOptions()
                             .bidirectional(row.bidirectional)
                             .max_distance(row.max_distance);
    EXPECT_TRUE(bit_equal(relative_position_buckets(relative, row.num_buckets, options), expected));
  }
}

TEST(RelativePositionBias, IsTheWeightOfTheBucket) {
  torch::manual_seed(testing::seed(1));
  const auto weight = torch::randn({32, 3});
  const auto bias = relative_position_bias(weight, 40, 70);
  const auto relative = torch::arange(70).unsqueeze(0) - torch::arange(40).unsqueeze(1);
  const auto rows = torch::embedding(weight, relative_position_buckets(relative, 32));
  EXPECT_TRUE(bit_equal(bias, rows.permute({2, 0, 1}).unsqueeze(0).contiguous()));
  // Queries that follow others, as in the steps of a decoder.
  const auto later =
      relative_position_bias(weight, 10, 70, RelativePositionFuncOptions().offset(30));
  EXPECT_TRUE(bit_equal(later, bias.narrow(2, 30, 10).contiguous()));
  EXPECT_EQ(relative_position_bias(weight, 0, 4).sizes(), at::IntArrayRef({1, 3, 0, 4}));
}

TEST(RelativePositionBias, HasTheGradientOfALookup) {
  torch::manual_seed(testing::seed(2));
  const auto weight = torch::randn({32, 3}).requires_grad_();
  const auto cotangent = torch::randn({1, 3, 20, 25});
  relative_position_bias(weight, 20, 25).backward(cotangent);
  const auto relative = torch::arange(25).unsqueeze(0) - torch::arange(20).unsqueeze(1);
  const auto bucket = relative_position_buckets(relative, 32).flatten();
  const auto expected =
      torch::zeros({32, 3}).index_add(0, bucket, cotangent[0].permute({1, 2, 0}).reshape({500, 3}));
  EXPECT_TRUE(within(Op::Gradient, weight.grad(), expected));
}

TEST(RelativePositionBias, RejectsWhatHasNoBuckets) {
  const auto relative = torch::arange(4);
  const auto options = [] { return RelativePositionFuncOptions(); };
  EXPECT_ERROR(relative_position_buckets(relative.to(torch::kInt), 32), c10::TypeError,
               "[RelativePositionBias] relative positions must be int64. Got Int");
  for (const int64_t buckets : {2, 7})
    EXPECT_ERROR(relative_position_buckets(relative, buckets), c10::ValueError,
                 "the number of buckets must be even, and at least 4. Got");
  EXPECT_ERROR(relative_position_buckets(relative, 1, options().bidirectional(false)),
               c10::ValueError, "the number of buckets must be at least 2. Got 1");
  EXPECT_ERROR(relative_position_buckets(relative, 32, options().max_distance(8)), c10::ValueError,
               "max_distance must be larger than 8, the number of distances with a bucket each. "
               "Got 8");
  EXPECT_ERROR(relative_position_bias(torch::zeros({32}), 3, 3), c10::ValueError,
               "weight must be (num_buckets, num_heads). Got [32]");
  EXPECT_ERROR(relative_position_bias(torch::zeros({32, 2}), -1, 3), c10::ValueError,
               "must not be negative. Got -1 and 3");
}

}  // namespace
}  // namespace posenc
