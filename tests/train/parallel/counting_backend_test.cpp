// The tests' own engine counts what is sent, for as many ranks as there are threads.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <atomic>

#include "support/counting_backend.h"
#include "train/parallel/collectives.h"

namespace posenc {
namespace {

using testing::CollectiveCount;
using testing::run_counted_ranks;
using testing::traffic;

void expect_count(const RankGroup& group, const std::string& name, int64_t calls, int64_t bytes,
                  double sent) {
  const auto counts = traffic(group);
  ASSERT_EQ(counts.count(name), 1u) << name;
  const CollectiveCount& counted = counts.at(name);
  EXPECT_EQ(counted.calls, calls) << name;
  EXPECT_EQ(counted.bytes, bytes) << name;
  EXPECT_DOUBLE_EQ(counted.sent, sent) << name;
}

TEST(CountingBackend, CountsEveryCollective) {
  for (const int size : {2, 16}) {
    run_counted_ranks(size, [&](const RankGroup& group) {
      const at::Tensor floats = at::ones({100});
      parallel::all_reduce(group, floats, "test");
      parallel::all_reduce(group, floats, "test");
      expect_count(group, "all_reduce", 2, 800, 2 * 2.0 * (size - 1) / size * 400);
      parallel::all_gather(group, floats, "test");
      expect_count(group, "all_gather", 1, 400, (size - 1) * 400.0);
      parallel::broadcast(group, floats, size - 1, "test");
      expect_count(group, "broadcast", 1, 400, 400.0 * (size - 1) / size);
      testing::reset_traffic(group);
      EXPECT_TRUE(traffic(group).empty());
    });
  }
}

TEST(CountingBackend, AgreeingCostsAHeaderOfEachRank) {
  run_counted_ranks(8, [](const RankGroup& group) {
    parallel::agree_on(group, std::string(1000, 'x'), "test");
    EXPECT_EQ(traffic(group).size(), 1u);
    expect_count(group, "all_gather", 1, 128, 7 * 128);
  });
}

TEST(CountingBackend, DifferentCallsAreAnErrorOnEveryRank) {
  std::atomic<int> errors{0};
  run_counted_ranks(4, [&](const RankGroup& group) {
    const at::Tensor tensor = at::ones({group.rank() == 2 ? 5 : 4});
    EXPECT_THROW(parallel::all_reduce(group, tensor, "test"), GroupError);
    ++errors;
  });
  EXPECT_EQ(errors, 4);
}

TEST(CountingBackend, ARankThatThrowsWakesTheOthers) {
  const auto work = [](const RankGroup& group) {
    if (group.rank() == 1) throw std::domain_error("");
    EXPECT_THROW(parallel::barrier(group, "test"), GroupError);
  };
  EXPECT_THROW(run_counted_ranks(3, work), std::domain_error);
}

}  // namespace
}  // namespace posenc
