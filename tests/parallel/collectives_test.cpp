#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "parallel/collectives.h"
#include "support/rank_threads.h"

namespace posenc {
namespace {

using parallel::all_gather;
using test::run_ranks;

class Collectives : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(1, 2, 3, 4));

TEST_P(Collectives, AllReduceSumsInPlace) {
  const int size = GetParam();
  run_ranks(size, [&](const RankGroup& group) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong}) {
      const at::Tensor tensor = at::full({3, 5}, group.rank() + 1, dtype);
      parallel::all_reduce(group, tensor, "test");
      EXPECT_TRUE(tensor.equal(at::full({3, 5}, size * (size + 1) / 2, dtype))) << dtype;
    }
  });
}

TEST_P(Collectives, RowsOfDifferentLengthsAreGatheredAndScattered) {
  const int size = GetParam();
  run_ranks(size, [&](const RankGroup& group) {
    const int64_t own = 2 * group.rank();  // rank 0 has none
    const std::vector<int64_t> lengths = parallel::all_gather_lengths(group, own, "test");
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(lengths[rank], 2 * rank);
    const at::Tensor rows = parallel::all_gather_rows(
        group, at::full({own, 3}, group.rank(), at::kFloat), lengths, "test");
    ASSERT_EQ(rows.size(0), size * (size - 1));
    const at::Tensor sum = parallel::reduce_scatter_rows(group, rows, lengths, "test");
    EXPECT_TRUE(sum.equal(at::full({own, 3}, group.rank() * size, at::kFloat)));
  });
}

TEST_P(Collectives, AgreeingTextsAreQuiet) {
  run_ranks(GetParam(), [](const RankGroup& group) {
    EXPECT_NO_THROW(parallel::agree_on(group, "weight float32 (3, 4)\n", "test"));
    EXPECT_NO_THROW(parallel::agree_on(group, "", "test"));
  });
}

}  // namespace
}  // namespace posenc
