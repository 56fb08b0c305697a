#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "support/counting_backend.h"
#include "support/rank_threads.h"
#include "train/parallel/collectives.h"

namespace posenc {
namespace {

using RunRanks = void (*)(int size, const std::function<void(const RankGroup&)>& work);

/// Every collective on Gloo and on the tests' own engine, with 1 to 4 ranks.
class Collectives : public ::testing::TestWithParam<std::tuple<RunRanks, int>> {
 protected:
  int size() const { return std::get<1>(GetParam()); }
  void run(const std::function<void(const RankGroup&)>& work) const {
    std::get<0>(GetParam())(size(), work);
  }
};
void run_gloo_ranks(int size, const std::function<void(const RankGroup&)>& work) {
  testing::run_ranks(size, work);
}
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives,
                         ::testing::Combine(::testing::Values(&run_gloo_ranks,
                                                              &testing::run_counted_ranks),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           const bool gloo = std::get<0>(info.param) == &run_gloo_ranks;
                           return (gloo ? "Gloo" : "InMemory") +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_P(Collectives, AllReduceSumsInPlace) {
  run([&](const RankGroup& group) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                             at::kComplexFloat}) {
      const at::Tensor tensor = at::full({3, 5}, group.rank() + 1, dtype);
      parallel::all_reduce(group, tensor, "test");
      EXPECT_TRUE(tensor.equal(at::full({3, 5}, size() * (size() + 1) / 2, dtype))) << dtype;
    }
  });
}

TEST_P(Collectives, SumsUnderWayKeepTheirTensors) {
  run([&](const RankGroup& group) {
    std::vector<parallel::Pending> pending;
    std::vector<at::Tensor> sums;
    for (int i = 0; i < 10; ++i) {
      at::Tensor tensor = at::full({1000 + i}, i);
      sums.push_back(tensor.alias());
      pending.push_back(parallel::start_all_reduce(group, tensor, "test"));
    }
    for (auto& one : pending) one.wait();
    for (auto& one : pending) one.wait();  // the second time there is nothing to do
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(sums[i].equal(at::full({1000 + i}, i * size())));
  });
}

TEST_P(Collectives, AllGatherKeepsTheOrderOfRanksForEveryDtype) {
  run([&](const RankGroup& group) {
    for (const auto dtype : {at::kFloat, at::kBool, at::kByte, at::kBFloat16, at::kComplexDouble}) {
      const at::Tensor tensor = at::full({2, 3}, group.rank() % 2, dtype);
      const at::Tensor gathered = parallel::all_gather(group, tensor, "test");
      ASSERT_EQ(gathered.sizes(), at::IntArrayRef({size(), 2, 3}));
      for (int rank = 0; rank < size(); ++rank) {
        EXPECT_TRUE(gathered[rank].equal(at::full({2, 3}, rank % 2, dtype))) << dtype;
      }
    }
    EXPECT_EQ(parallel::all_gather(group, at::ones({}), "test").sizes(), at::IntArrayRef({size()}));
    EXPECT_EQ(parallel::all_gather(group, at::ones({0, 4}), "test").sizes(),
              at::IntArrayRef({size(), 0, 4}));
  });
}

TEST_P(Collectives, RowsOfDifferentLengthsAreGathered) {
  run([&](const RankGroup& group) {
    for (const int step : {2, 0}) {
      const int64_t own = step == 0 ? 3 : step * group.rank();  // unequal, rank 0 has none; equal
      const std::vector<int64_t> lengths = parallel::all_gather_numbers(group, own, "test");
      std::vector<at::Tensor> expected;
      for (int rank = 0; rank < size(); ++rank) {
        ASSERT_EQ(lengths[rank], step == 0 ? 3 : step * rank);
        expected.push_back(at::full({lengths[rank], 3}, rank));
      }
      const at::Tensor rows =
          parallel::all_gather_rows(group, expected[group.rank()], lengths, "test");
      EXPECT_TRUE(rows.equal(at::cat(expected)));
    }
    const std::vector<int64_t> none(size());
    EXPECT_EQ(parallel::all_gather_rows(group, at::ones({0, 4}), none, "test").sizes(),
              at::IntArrayRef({0, 4}));
  });
}

TEST_P(Collectives, BroadcastCopiesFromAnyRank) {
  run([&](const RankGroup& group) {
    for (int root = 0; root < size(); ++root) {
      const at::Tensor tensor = at::full({5}, group.rank(), at::kHalf);
      parallel::broadcast(group, tensor, root, "test");
      EXPECT_TRUE(tensor.equal(at::full({5}, root, at::kHalf)));
    }
    EXPECT_NO_THROW(parallel::barrier(group, "test"));
  });
}

TEST_P(Collectives, TheArgumentIsNotPartOfAnyGraph) {
  run([&](const RankGroup& group) {
    const at::Tensor weight = at::ones({4}).requires_grad_();
    parallel::broadcast(group, weight, 0, "test");
    EXPECT_FALSE(parallel::all_gather(group, weight * 2, "test").requires_grad());
    EXPECT_TRUE(weight.is_leaf());
  });
}

TEST(Collectives, ASingleProcessNeedsNoGroup) {
  const RankGroup none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.size(), 1);
  EXPECT_EQ(none.rank(), 0);
  EXPECT_EQ(none.get(), nullptr);
  const at::Tensor tensor = at::arange(6).view({2, 3});
  parallel::all_reduce(none, tensor, "test");
  parallel::broadcast(none, tensor, 0, "test");
  parallel::barrier(none, "test");
  EXPECT_TRUE(parallel::all_gather(none, tensor, "test").equal(tensor.unsqueeze(0)));
  const at::Tensor rows = parallel::all_gather_rows(none, tensor, {2}, "test");
  EXPECT_TRUE(rows.equal(tensor));
  EXPECT_FALSE(rows.is_alias_of(tensor));
  EXPECT_EQ(parallel::all_gather_numbers(none, 5, "test"), std::vector<int64_t>{5});
  parallel::agree_on(none, "anything", "test");
}

}  // namespace
}  // namespace posenc
