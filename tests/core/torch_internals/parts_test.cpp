#include "core/torch_internals/parts.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/threads.h"

namespace posenc::torch_internals {
namespace {

TEST(Parts, CoverTheRangeOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const testing::Threads guard(threads);
    for (const int64_t count : {0, 1, 2, 3, 5, 64, 1001})
      for (const int64_t grain : {1, 2, 3, 50, 5000}) {
        std::vector<int> covered(static_cast<size_t>(count));
        parallel_parts(7, 7 + count, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) ++covered[static_cast<size_t>(i - 7)];
        });
        EXPECT_EQ(covered, std::vector<int>(covered.size(), 1)) << count << ", " << grain;
      }
  }
}

TEST(Parts, OfLittleWorkAreOne) {
  const testing::Threads guard(4);
  int parts = 0;
  parallel_parts(0, 100, 100, [&](int64_t, int64_t) { ++parts; });
  EXPECT_EQ(parts, 1);
}

// LibTorch's operations, and loops of our own, do not split what is a part already.
TEST(Parts, AreParallelRegions) {
  const testing::Threads guard(4);
  std::atomic<int> outside{0};
  parallel_parts(0, 64, 1, [&](int64_t, int64_t) {
    outside += at::get_num_threads() == 1 && most_threads() == 1 ? 0 : 1;
  });
  EXPECT_EQ(outside, 0);
  EXPECT_EQ(at::get_num_threads(), 4);
  at::parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    const auto thread = std::this_thread::get_id();
    run_parts(8, [&](int64_t) { outside += std::this_thread::get_id() == thread ? 0 : 1; });
  });
  EXPECT_EQ(outside, 0);
}

TEST(Parts, ThrowWhatAPartThrows) {
  const testing::Threads guard(3);
  for (const Loops loops : {Loops::Helpers, Loops::LibTorch}) {
    const CallThreads call({.loops = loops});
    EXPECT_THROW(run_parts(9,
                           [](int64_t i) {
                             if (i == 4) throw std::runtime_error("four");
                           }),
                 std::runtime_error);
  }
}

TEST(CallThreads, AreTheLeastOfAllLimits) {
  const testing::Threads guard(4);
  EXPECT_EQ(most_threads(), 4);
  {
    const CallThreads all({});
    EXPECT_EQ(most_threads(), 4);
    const CallThreads two({.threads = 2});
    EXPECT_EQ(most_threads(), 2);
    const CallThreads three({.threads = 3});
    EXPECT_EQ(most_threads(), 2);
  }
  const CallThreads many({.threads = 100});
  EXPECT_EQ(most_threads(), 4);
}

TEST(CallThreads, GiveSmallOperationsOfLibTorchOne) {
  const testing::Threads guard(4);
  {
    const CallThreads small({.threads = 3});
    EXPECT_EQ(at::get_num_threads(), 1);
    {
      const CallThreads large({}, Operations::Large);
      EXPECT_EQ(at::get_num_threads(), 3);
    }
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 4);
}

// MKL's own number, which at::set_num_threads() sets for the process and a call for its thread.
TEST(CallThreads, AreThoseOfMklToo) {
  if (MKL_Set_Num_Threads_Local == nullptr) GTEST_SKIP() << "a LibTorch without MKL";
  const testing::Threads guard(4);
  const auto own = [] {
    const int threads = MKL_Set_Num_Threads_Local(0);
    MKL_Set_Num_Threads_Local(threads);
    return threads;
  };
  const int outside = own();
  {
    const CallThreads two({.threads = 2, .loops = Loops::LibTorch});
    EXPECT_EQ(own(), 2);
    run_parts(4, [&](int64_t) {});
    EXPECT_EQ(own(), 2);
    const CallThreads few({});
    EXPECT_EQ(own(), 1);
    run_parts(4, [&](int64_t) { EXPECT_EQ(own(), 1); });
    const CallersThreads callback;
    EXPECT_EQ(own(), outside);
  }
  EXPECT_EQ(own(), outside);
}

TEST(CallThreads, LeaveCallbacksThoseOfTheirOwner) {
  const testing::Threads guard(4);
  {
    const CallThreads outer({.threads = 2});
    const CallThreads inner({.threads = 1});
    {
      const CallersThreads callback;
      EXPECT_EQ(at::get_num_threads(), 4);
      EXPECT_EQ(most_threads(), 4);
      at::set_num_threads(3);
    }
    EXPECT_EQ(at::get_num_threads(), 1);
    EXPECT_EQ(most_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 3) << "what a callback sets";
  const CallersThreads outside;
  EXPECT_EQ(at::get_num_threads(), 3);
}

}  // namespace
}  // namespace posenc::torch_internals
