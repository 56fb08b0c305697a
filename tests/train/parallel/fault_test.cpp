// Ranks as threads that throw, end, hang or never come; what the engine refuses; senseless options.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "posenc/train/gloo.h"
#include "support/compare.h"
#include "support/rank_threads.h"
#include "train/parallel/collectives.h"

namespace posenc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::run_ranks;

void sum(const RankGroup& group, int64_t length = 1000) {
  parallel::all_reduce(group, at::ones({length}), "sum");
}

/// The code of the GroupError that `call` throws.
template <typename Call>
GroupErrorCode code_of(const Call& call) {
  try {
    call();
  } catch (const GroupError& error) {
    return error.code();
  }
  throw std::logic_error("no GroupError");
}

TEST(Fault, ARankThatThrowsWakesTheOthers) {
  std::atomic<int> lost{0};
  const auto work = [&](const RankGroup& group) {
    sum(group);
    if (group.rank() == 1) throw std::domain_error("rank 1's own");
    EXPECT_EQ(code_of([&] { sum(group); }), GroupErrorCode::PeerLost);
    EXPECT_EQ(code_of([&] { sum(group); }), GroupErrorCode::PeerLost) << "the group stays lost";
    EXPECT_EQ(code_of([&] { parallel::agree_on(group, "x", "test"); }), GroupErrorCode::PeerLost);
    ++lost;
    // As a process would: a rank that has noticed and stays would let the others wait for it.
    throw std::runtime_error("ends");
  };
  EXPECT_THROW(run_ranks(3, work), std::domain_error);
  EXPECT_EQ(lost, 2);
}

TEST(Fault, ARankThatHangsIsNoticedAfterTheTimeout) {
  std::promise<void> noticed;
  const auto work = [&](const RankGroup& group) {
    if (group.rank() == 1) return noticed.get_future().wait();
    EXPECT_EQ(code_of([&] { sum(group); }), GroupErrorCode::TimedOut);
    noticed.set_value();
  };
  run_ranks(2, work, seconds(1));
}

TEST(Fault, OtherCollectivesOnOneRankEndInAnErrorOnBoth) {
  const auto work = [](const RankGroup& group) {
    EXPECT_NO_FATAL_FAILURE(code_of([&] {
      group.rank() == 0 ? sum(group) : parallel::broadcast(group, at::ones({3}), 1, "test");
      sum(group);
    }));
  };
  run_ranks(2, work, seconds(3));
}

TEST(Fault, ARankThatNeverComesIsARendezvousError) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  EXPECT_EQ(code_of([&] { gloo_group(store, 0, 2, GroupOptions().timeout(seconds(1))); }),
            GroupErrorCode::Rendezvous);
  EXPECT_EQ(store->getTimeout(), c10d::Store::kDefaultTimeout) << "the store is as it was";
}

TEST(Fault, AnErrorOfThisProcessAloneKeepsItsType) {
  run_ranks(2, [](const RankGroup& group) {
    for (const auto dtype : {at::kFloat8_e4m3fn, at::kBool}) {
      EXPECT_ERROR(parallel::all_reduce(group, at::zeros({3}, dtype), "sum"), c10::TypeError,
                   "[sum] tensors that are summed over processes must be floating-point of 16 bits "
                   "or more, or integers. Got " +
                       std::string(at::toString(dtype)));
    }
    // A device for which the group has no backend, like a GPU with Gloo alone.
    const at::Tensor elsewhere = at::empty({3}, at::kMeta);
    EXPECT_THROW(parallel::all_reduce(group, elsewhere, "test"), c10::Error);
    sum(group);  // nothing was sent
  });
}

TEST(Fault, MessagesNameCallerRankAndRemedy) {
  const auto work = [](const RankGroup& group) {
    if (group.rank() == 1) throw std::domain_error("");
    const std::string text = testing::message_of([&] { sum(group); });
    EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                        "[sum] rank 0 of 2: the group lost a process; start all processes again. "
                        "Got: ",
                        text);
  };
  EXPECT_THROW(run_ranks(2, work), std::domain_error);
}

TEST(Fault, OptionsOutOfRangeAreRefused) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto at_address = [](const char* address) { return GroupOptions().address(address); };
  EXPECT_ERROR(gloo_group({}, 0, 1), c10::ValueError, "[gloo_group] a store is required");
  EXPECT_ERROR(gloo_group(store, 2, 2), c10::ValueError,
               "[gloo_group] rank must lie in [0, 2). Got 2");
  EXPECT_ERROR(gloo_group(store, -1, 2), c10::ValueError, "Got -1");
  EXPECT_ERROR(gloo_group(store, 0, 0), c10::ValueError, "[0, 0). Got 0");
  EXPECT_ERROR(gloo_group(store, 0, 1, GroupOptions().timeout(milliseconds(0))), c10::ValueError,
               "[gloo_group] timeout must be positive and at most 30 days. Got 0 ms");
  for (const char* address : {"192.0.2.1", "no such interface", "256.1.1.1"}) {
    EXPECT_ERROR(gloo_group(store, 0, 1, at_address(address)), c10::ValueError,
                 "[gloo_group] address must be an address of this host or the name of one of its "
                 "network interfaces. Got `" +
                     std::string(address) + "`");
  }
  for (const char* address : {"lo", "127.0.0.1", ""}) {
    EXPECT_EQ(gloo_group(store, 0, 1, at_address(address)).size(), 1) << address;
  }
}

TEST(Fault, ABrokenPipeDoesNotEndTheProcess) {
  const auto action = [] {
    struct sigaction now {};
    sigaction(SIGPIPE, nullptr, &now);
    return now.sa_handler;
  };
  const auto make = [] { gloo_group(c10::make_intrusive<c10d::HashStore>(), 0, 1); };
  const auto before = signal(SIGPIPE, SIG_DFL);
  make();
  EXPECT_EQ(action(), SIG_IGN);
  const auto handler = [](int) {};
  signal(SIGPIPE, handler);
  make();
  EXPECT_EQ(action(), static_cast<void (*)(int)>(handler)) << "the program's own stays";
  signal(SIGPIPE, before);
}

TEST(Fault, AGroupNeedsABackendForTheCpu) {
  EXPECT_ERROR(RankGroup(c10::intrusive_ptr<c10d::ProcessGroup>()), c10::ValueError,
               "[RankGroup] a process group is required");
  const auto bare =
      c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), 0, 1);
  EXPECT_ERROR(RankGroup{bare}, c10::ValueError,
               "[RankGroup] the process group must have a backend for CPU tensors");
}

}  // namespace
}  // namespace posenc
