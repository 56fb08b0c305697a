#include "posenc/positions/functional/grid_positional_encoding.h"

#include <gtest/gtest.h>

#include "support/compare.h"

namespace posenc {
namespace {

using functional::grid_positional_encoding;
using testing::bit_equal;

TEST(GridPositionalEncoding, AddsATableWithAndWithoutItsBatchAxis) {
  const auto x = torch::randn({2, 5, 6}), table = torch::randn({5, 6});
  EXPECT_TRUE(bit_equal(grid_positional_encoding(x, table), x + table));
  EXPECT_TRUE(bit_equal(grid_positional_encoding(x, table.unsqueeze(0)), x + table));
  EXPECT_TRUE(bit_equal(grid_positional_encoding(x[0], table.unsqueeze(0)), x[0] + table));
}

TEST(GridPositionalEncoding, BroadcastsNothingOverRows) {
  EXPECT_ERROR(
      grid_positional_encoding(torch::zeros({1, 5, 6}), torch::zeros({1, 6})), c10::ValueError,
      "[GridPositionalEncoding] x must have 1 rows, one a row of the table. Got [1, 5, 6]");
  EXPECT_ERROR(grid_positional_encoding(torch::zeros({2, 5, 6}), torch::zeros({2, 5, 6})),
               c10::ValueError, "table must be (R, D) or (1, R, D). Got [2, 5, 6]");
  EXPECT_ERROR(grid_positional_encoding(torch::zeros({2, 5, 6}), torch::zeros({6})),
               c10::ValueError, "table must be (R, D) or (1, R, D). Got [6]");
}

}  // namespace
}  // namespace posenc
