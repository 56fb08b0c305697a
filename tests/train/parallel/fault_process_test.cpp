// Processes that are killed, stopped, end early, never come or hold another model: the others get a
// GroupError and end normally, with an exit code that is not 0. Each kind of error says whether a
// peer was noticed at once or after the time-out, which is far longer than the tests would wait.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

#include "support/rank_processes.h"
#include "support/rank_threads.h"
#include "train/parallel/collectives.h"

namespace posenc {
namespace {

using std::chrono::seconds;
using testing::RankEnd;
using testing::RankProcesses;

void sum_forever(const RankGroup& group) {
  const at::Tensor tensor = at::ones({1 << 16});
  parallel::all_reduce(group, tensor, "sum_forever");
  testing::announce(group, "started");
  while (true) parallel::all_reduce(group, tensor.fill_(1), "sum_forever");
}
const bool kSumForever = testing::register_rank_work("sum_forever", sum_forever);

/// The same with a time-out that is over soon.
void sum_impatiently(const RankGroup& group) {
  const at::Tensor tensor = at::ones({1 << 16});
  testing::announce(group, "started");
  testing::set_timeout(group, seconds(4));
  while (true) parallel::all_reduce(group, tensor.fill_(1), "sum_impatiently");
}
const bool kSumImpatiently = testing::register_rank_work("sum_impatiently", sum_impatiently);

void end_early(const RankGroup& group) {
  if (group.rank() == 0) return;
  sum_forever(group);
}
const bool kEndEarly = testing::register_rank_work("end_early", end_early);

void throw_early(const RankGroup& group) {
  TORCH_CHECK(group.rank() != 1, "this rank's disk is full");
  sum_forever(group);
}
const bool kThrowEarly = testing::register_rank_work("throw_early", throw_early);

/// A model of rank 1 with another width: the engine aborts one of the processes, unless they agree
/// on the text first.
void agree_and_sum(const RankGroup& group) {
  const int64_t width = group.rank() == 1 ? 1 << 17 : 1 << 16;
  parallel::agree_on(group, "weight float32 (" + std::to_string(width) + ")", "agree_and_sum");
  parallel::all_reduce(group, at::ones({width}), "agree_and_sum");
}
const bool kAgreeAndSum = testing::register_rank_work("agree_and_sum", agree_and_sum);

void expect_group_error(const RankEnd& end, const std::string& code, int rank) {
  EXPECT_EQ(end.signal, 0) << "rank " << rank;
  EXPECT_EQ(end.exit_code, 1) << "rank " << rank;
  EXPECT_EQ(end.error.rfind(code + " [", 0), 0u) << "rank " << rank << ": " << end.error;
}

TEST(FaultProcess, AKilledPeerIsAnErrorOnEverySurvivor) {
  for (const int size : {2, 3}) {
    for (int killed = 0; killed < size; ++killed) {  // rank 0 too
      RankProcesses ranks(size, "sum_forever");
      for (int rank = 0; rank < size; ++rank) ranks.await(rank, "started");
      ranks.send_signal(killed, SIGKILL);
      for (int rank = 0; rank < size; ++rank) {
        const RankEnd end = ranks.wait(rank);
        if (rank == killed) {
          EXPECT_EQ(end.signal, SIGKILL);
        } else {
          expect_group_error(end, "PeerLost", rank);
        }
      }
    }
  }
}

TEST(FaultProcess, AStoppedPeerIsAnErrorAfterTheTimeout) {
  for (int stopped = 0; stopped < 2; ++stopped) {
    RankProcesses ranks(2, "sum_impatiently");
    for (int rank = 0; rank < 2; ++rank) ranks.await(rank, "started");
    ranks.send_signal(stopped, SIGSTOP);
    expect_group_error(ranks.wait(1 - stopped), "TimedOut", 1 - stopped);
    ranks.send_signal(stopped, SIGCONT);  // it finds its peer gone, or its own time-out over
    const RankEnd resumed = ranks.wait(stopped);
    expect_group_error(resumed, resumed.error.substr(0, 8), stopped);
    EXPECT_TRUE(resumed.error.substr(0, 8) == "PeerLost" ||
                resumed.error.substr(0, 8) == "TimedOut");
  }
}

TEST(FaultProcess, APeerThatEndsOrThrowsIsAnErrorOnTheOthers) {
  RankProcesses ends(3, "end_early");
  EXPECT_EQ(ends.wait(0).exit_code, 0);
  for (int rank = 1; rank < 3; ++rank) expect_group_error(ends.wait(rank), "PeerLost", rank);
  RankProcesses throws(3, "throw_early");
  const RankEnd thrown = throws.wait(1);
  EXPECT_NE(thrown.error.find("this rank's disk is full"), std::string::npos) << thrown.error;
  for (const int rank : {0, 2}) expect_group_error(throws.wait(rank), "PeerLost", rank);
}

TEST(FaultProcess, AnAbsentPeerIsAnErrorAfterTheTimeout) {
  RankProcesses ranks(3, "sum_forever", seconds(2), {}, /*start=*/2);
  for (int rank = 0; rank < 2; ++rank) expect_group_error(ranks.wait(rank), "Rendezvous", rank);
}

TEST(FaultProcess, AnotherModelOnOneRankIsAnErrorOnAll) {
  for (const int size : {2, 3}) {
    RankProcesses ranks(size, "agree_and_sum");
    for (int rank = 0; rank < size; ++rank) {
      const RankEnd end = ranks.wait(rank);
      expect_group_error(end, "Disagree", rank);
      EXPECT_NE(end.error.find("Rank 1 has `weight float32 (131072)`, rank 0 has `weight float32 "
                               "(65536)`"),
                std::string::npos)
          << end.error;
    }
  }
}

}  // namespace
}  // namespace posenc
