#include "posenc/positions/relative/index.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "posenc/positions/relative/bias.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

using relative::Buckets;
using relative::Clamp;
using relative::Index;
using relative::Shift;
using relative::SignedLog;
using testing::bit_equal;

torch::Tensor distances_of(std::vector<int64_t> values) {
  return torch::tensor(values, torch::kLong);
}

TEST(RelativeIndex, IsARowOfTheTableUpToAnyDistance) {
  const auto far = distances_of({-(int64_t{1} << 31), -70000, -1, 0, 1, 70000, int64_t{1} << 31});
  const Index kinds[] = {
      Buckets{},    Buckets{33, 40, false}, Buckets{320, 800, true, true}, SignedLog{256, 512},
      Clamp{64, 8}, Clamp{4, 3, true},      Clamp{4, 4, false, true}};
  for (const Index& index : kinds) {
    SCOPED_TRACE(index.index());
    const auto rows = relative_index(far, index);
    EXPECT_GE(rows.min().item<int64_t>(), 0);
    EXPECT_LT(rows.max().item<int64_t>(), relative_rows(index));
  }
}

TEST(RelativeIndex, OfClampIsTheDistanceFromTheFarthestKey) {
  const auto distances = distances_of({-9, -2, 0, 1, 9});
  EXPECT_TRUE(bit_equal(relative_index(distances, Clamp{2, 1}), distances_of({0, 0, 2, 3, 3})));
  EXPECT_TRUE(
      bit_equal(relative_index(distances, Clamp{2, 1, true}), distances_of({3, 3, 2, 1, 0})));
  EXPECT_TRUE(bit_equal(relative_index(distances, Clamp{2, 1, false, true}),
                        distances_of({2, 2, 0, 1, 1})));
  EXPECT_EQ(relative_rows(Clamp{2, 1}), 4);
  EXPECT_EQ(relative_rows(Clamp{2, 1, false, true}), 3);
}

// Near distances have a bucket each, and both sides are mirrored.
TEST(RelativeIndex, OfSignedLogIsMirrored) {
  const auto distances = torch::arange(-600, 601);
  const auto rows = relative_index(distances, SignedLog{16, 512}) - 16;
  const auto mirrored = -rows.flip(0);
  // The last row of one side is beyond the table of the other.
  EXPECT_TRUE(bit_equal(rows.slice(0, 100, 1101).clamp(-15, 15),
                        mirrored.slice(0, 100, 1101).clamp(-15, 15)));
  for (int64_t d = -8; d <= 8; ++d) EXPECT_EQ(rows[600 + d].item<int64_t>(), -d) << d;
}

TEST(RelativeIndex, TruncatesTheSumOnlyWhereAsked) {
  const auto distances = torch::arange(0, 100000);
  const auto before = relative_index(distances, Buckets{320, 800, true, false});
  const auto after = relative_index(distances, Buckets{320, 800, true, true});
  EXPECT_LE((before - after).abs().max().item<int64_t>(), 1);
}

TEST(RelativeIndex, OfPairsIsThatOfTheirDistances) {
  const auto queries = torch::tensor({{3, 9}, {0, 1}}, torch::kLong);
  const auto keys = torch::tensor({{1, 2, 9}, {5, 5, 0}}, torch::kLong);
  const auto rows = relative_index(queries, keys, Shift{20});
  EXPECT_TRUE(bit_equal(
      rows,
      torch::tensor({{{18, 19, 26}, {12, 13, 20}}, {{25, 25, 20}, {24, 24, 19}}}, torch::kLong)));
}

TEST(RelativeIndex, Errors) {
  const auto distances = torch::arange(-40, 40);
  EXPECT_ERROR(relative_index(distances.to(torch::kInt), Buckets{}), c10::TypeError, "int64");
  EXPECT_ERROR(relative_index(distances, Buckets{31}), c10::ValueError, "even, and at least 4");
  EXPECT_ERROR(relative_index(distances, Buckets{32, 8}), c10::ValueError,
               "max_distance must be larger than 8");
  EXPECT_ERROR(relative_index(distances, Clamp{-1, 3}), c10::ValueError, "must not be negative");
  EXPECT_ERROR(relative_index(distances, SignedLog{1, 64}), c10::ValueError, "at least 2");
  // What would overflow.
  const int64_t huge = int64_t{1} << 62;
  EXPECT_ERROR(relative_rows(SignedLog{huge, 64}), c10::ValueError,
               "buckets must be at least 2, and at most 4294967296");
  EXPECT_ERROR(relative_rows(Clamp{huge, huge}), c10::ValueError, "at most 4294967296");
  EXPECT_ERROR(relative_index(distances, Clamp{3, huge}), c10::ValueError,
               "right must not be negative, and at most 4294967296. Got 4611686018427387904");
  EXPECT_ERROR(relative_index(distances, Shift{-1}), c10::ValueError,
               "origin must not be negative");
  const auto positions = torch::arange(6).view({2, 3});
  EXPECT_ERROR(relative_index(positions, torch::arange(9).view({3, 3}), Buckets{}), c10::ValueError,
               "of the same sequences. Got [2, 3] and [3, 3]");
  EXPECT_ERROR(relative_index(distances, SignedLog{32, 17}), c10::ValueError,
               "max_position must be larger than 17");
  // Which no distance up to half of the buckets needs.
  EXPECT_EQ(relative_index(torch::arange(16), SignedLog{32, 17}).size(0), 16);
}

struct BiasSizes {
  int64_t queries, keys, offset;
};
constexpr BiasSizes kSizes[] = {{7, 9, 0}, {1, 30, 29}, {9, 7, 4}, {0, 4, 0}, {4, 0, 0}};

// The diagonals of a matrix are equal, so that a row has all of its entries.
TEST(RelativeBias, IsTheEntryOfEachPair) {
  torch::manual_seed(testing::seed(1));
  const Index kinds[] = {Buckets{}, SignedLog{16, 64}, Clamp{5, 2}, Clamp{3, 3, false, true}};
  for (const Index& index : kinds) {
    SCOPED_TRACE(index.index());
    const auto table = torch::randn({relative_rows(index), 3});
    for (const auto& [queries, keys, offset] : kSizes) {
      const auto rows =
          relative_index(torch::arange(offset, offset + queries), torch::arange(keys), index);
      const auto expected =
          torch::embedding(table, rows).permute({2, 0, 1}).unsqueeze(0).contiguous();
      const auto bias = relative_position_bias(table, queries, keys, index, offset);
      EXPECT_TRUE(bit_equal(bias, expected)) << queries << " " << keys;
      EXPECT_TRUE(bias.is_contiguous());
    }
    const auto at = torch::randint(0, 50, {2, 6});
    EXPECT_TRUE(bit_equal(
        relative_position_bias(table, at, at, index),
        torch::embedding(table, relative_index(at, at, index)).permute({0, 3, 1, 2}).contiguous()));
  }
}

TEST(RelativeBias, HasTheGradientOfALookup) {
  torch::manual_seed(testing::seed(2));
  const auto table = torch::randn({32, 3}, torch::kDouble).requires_grad_();
  const auto cotangent = torch::randn({1, 3, 20, 25}, torch::kDouble);
  relative_position_bias(table, 20, 25, Buckets{}).backward(cotangent);
  auto expected = torch::zeros({32, 3}, torch::kDouble);
  const auto rows = relative_index(torch::arange(20), torch::arange(25), Buckets{}).flatten();
  expected.index_add_(0, rows, cotangent.squeeze(0).permute({1, 2, 0}).reshape({-1, 3}));
  EXPECT_LE((table.grad() - expected).abs().max().item<double>(), 1e-12);
}

TEST(RelativeBias, Errors) {
  const auto table = torch::zeros({32, 2});
  EXPECT_ERROR(relative_position_bias(torch::zeros({32}), 3, 3, Buckets{}), c10::ValueError,
               "weight must be (num_buckets, num_heads)");
  EXPECT_ERROR(relative_position_bias(table, 3, 3, Clamp{4, 4}), c10::ValueError,
               "weight must have 9 rows");
  EXPECT_ERROR(relative_position_bias(table, 3, 3, Buckets{}, -1), c10::ValueError,
               "offset must not be negative");
  EXPECT_ERROR(relative_position_bias(table, 3, 3, Buckets{}, int64_t{1} << 62), c10::ValueError,
               "at most 4294967296");
  EXPECT_ERROR(relative_position_bias(table, 20, 20, Shift{19}), c10::ValueError,
               "indices must be rows of the table, 0 to 31. Got 0 to 38");
  EXPECT_ERROR(relative_bias_of_indices(table, torch::full({2, 2}, 32)), c10::ValueError,
               "0 to 31. Got 32 to 32");
  EXPECT_ERROR(relative_bias_of_indices(table, torch::zeros({2, 2})), c10::TypeError,
               "indices must be int64. Got Float");
  EXPECT_ERROR(relative_position_bias(table, -1, 3, Buckets{}), c10::ValueError,
               "must not be negative");
}

}  // namespace
}  // namespace posenc
