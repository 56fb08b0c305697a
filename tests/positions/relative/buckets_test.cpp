#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "posenc/positions/relative/bias.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

using relative::Buckets;
using testing::bit_equal;

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
    const Buckets buckets = {row.num_buckets, row.max_distance, row.bidirectional};
    EXPECT_TRUE(bit_equal(relative_index(relative, buckets), expected));
  }
}

TEST(RelativePositionBias, IsTheWeightOfTheBucket) {
  torch::manual_seed(testing::seed(1));
  const auto weight = torch::randn({32, 3});
  const auto bias = relative_position_bias(weight, 40, 70, Buckets{});
  const auto relative = torch::arange(70).unsqueeze(0) - torch::arange(40).unsqueeze(1);
  const auto rows = torch::embedding(weight, relative_index(relative, Buckets{}));
  EXPECT_TRUE(bit_equal(bias, rows.permute({2, 0, 1}).unsqueeze(0).contiguous()));
  // Queries that follow others, as in the steps of a decoder.
  const auto later = relative_position_bias(weight, 10, 70, Buckets{}, /*offset=*/30);
  EXPECT_TRUE(bit_equal(later, bias.narrow(2, 30, 10).contiguous()));
  EXPECT_EQ(relative_position_bias(weight, 0, 4, Buckets{}).sizes(), at::IntArrayRef({1, 3, 0, 4}));
}

TEST(RelativePositionBias, RejectsWhatHasNoBuckets) {
  const auto relative = torch::arange(4);
  EXPECT_ERROR(relative_index(relative.to(torch::kInt), Buckets{}), c10::TypeError,
               "[RelativePositionBias] relative positions must be int64. Got Int");
  for (const int64_t number : {2, 7})
    EXPECT_ERROR(relative_index(relative, Buckets{number}), c10::ValueError,
                 "the number of buckets must be even, and at least 4. Got");
  EXPECT_ERROR(relative_index(relative, Buckets{1, 128, false}), c10::ValueError,
               "the number of buckets must be at least 2. Got 1");
  EXPECT_ERROR(relative_index(relative, Buckets{32, 8}), c10::ValueError,
               "max_distance must be larger than 8, the number of distances with a bucket each. "
               "Got 8");
}

}  // namespace
}  // namespace posenc
