// The largest products of segments of rows: the bits of all products and of their maximum, of each
// kind of weight, whatever the number of threads.

#include "inference/linear/largest_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/compare.h"
#include "support/seed.h"
#include "support/threads.h"

namespace posenc::largest_rows_test {
namespace {

using namespace inference;
using testing::bit_equal;
using testing::Threads;

// -inf for a segment without rows.
torch::Tensor largest_of(const torch::Tensor& products, const std::vector<int64_t>& lengths) {
  std::vector<torch::Tensor> largest;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    const auto own = products.narrow(0, first, length);
    largest.push_back(length == 0 ? torch::full({products.size(1)}, -INFINITY)
                                  : std::get<0>(own.max(0)));
    first += length;
  }
  return torch::stack(largest);
}

// Several parts of the columns, of which the last is not whole, and of the rows.
TEST(LargestRows, HaveTheBitsOfTheProducts) {
  torch::manual_seed(testing::seed(71));
  const auto weight = torch::randn({1043, 70}), bias = torch::randn({1043});
  const std::pair<const char*, Projection> projections[] = {
      {"float32", {weight, bias, kAlwaysNative}},
      {"without a bias", {weight, {}, kAlwaysNative}},
      {"int8", {Int8Weight(weight), bias}},
      {"int8, blocks", {Int8Weight(weight, 64), bias}},
      {"bfloat16", {BFloat16Weight(weight), bias}},
      {"bfloat16, packed", {PackedBFloat16Weight(weight), bias}}};
  for (const auto& [name, projection] : projections) {
    for (const std::vector<int64_t>& lengths :
         {std::vector<int64_t>{1}, {2, 1}, {0, 5, 0}, {190, 0, 3, 16, 200, 1}}) {
      const auto rows =
          torch::randn({std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), 70});
      const auto expected = largest_of(projection.rows(rows), lengths);
      for (const int threads : {1, 2, 3, 4}) {
        const Threads guard(threads);
        EXPECT_TRUE(bit_equal(largest_rows({{&projection, 0}}, rows, lengths), expected))
            << name << ", " << lengths.size() << " segments, " << threads << " threads";
      }
    }
  }
}

TEST(LargestRows, AreOfASumOfProducts) {
  torch::manual_seed(testing::seed(72));
  const Projection table(torch::randn({600, 24}), torch::randn({600}), kAlwaysNative),
      beside(torch::randn({600, 40}), {}, kAlwaysNative);
  const auto rows = torch::randn({230, 64});
  const auto products = table.rows(rows.narrow(1, 0, 24)) + beside.rows(rows.narrow(1, 24, 40));
  EXPECT_TRUE(bit_equal(largest_rows({{&table, 0}, {&beside, 24}}, rows, {30, 200}),
                        largest_of(products, {30, 200})));
}

}  // namespace
}  // namespace posenc::largest_rows_test
