// Threads that help with the parts of loops, without LibTorch, so that these cases also run under
// ThreadSanitizer (platform.races).

#include "base/platform/helpers.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace posenc::platform {
namespace {

void run(Helpers& helpers, int64_t count, int threads, std::function<void(int64_t)> f) {
  const auto part = [](void* context, int64_t i) {
    (*static_cast<std::function<void(int64_t)>*>(context))(i);
  };
  helpers.run({part, &f, count}, threads);
}

// Adds one to each of `count` numbers, which are not atomic.
bool runs_each_once(Helpers& helpers, int64_t count, int threads) {
  std::vector<int> runs(static_cast<std::size_t>(count));
  run(helpers, count, threads, [&](int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
  return runs == std::vector<int>(runs.size(), 1);
}

// Waits for an event, however long it takes.
class Event {
 public:
  void set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return is_set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

TEST(Helpers, RunEachPartOnce) {
  Helpers helpers(3);
  for (const int64_t count : {0, 1, 2, 3, 7, 100, 5000})
    for (const int threads : {1, 2, 4, 1000})
      EXPECT_TRUE(runs_each_once(helpers, count, threads)) << count << " parts, " << threads;
}

TEST(Helpers, ServeSeveralCallers) {
  Helpers helpers(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 500; ++round) {
        if (!runs_each_once(helpers, 1 + (caller + round) % 40, 1 + round % 5)) ++wrong;
        if (round % 100 == 0)  // long enough for helpers to sleep
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// Both parts run at the same time: each waits for the other.
TEST(Helpers, TakePartsWhileTheCallerIsBusy) {
  Helpers helpers(1);
  Event begun[2];
  std::thread::id threads[2];
  run(helpers, 2, 2, [&](int64_t i) {
    threads[i] = std::this_thread::get_id();
    begun[i].set();
    begun[1 - i].wait();
  });
  EXPECT_EQ(threads[0], std::this_thread::get_id()) << "the caller begins at the beginning";
  EXPECT_NE(threads[1], std::this_thread::get_id());
}

TEST(Helpers, AreWaitedForWhileTheyExecuteAPart) {
  Helpers helpers(1);
  Event begun;
  bool is_done = false;
  run(helpers, 2, 2, [&](int64_t i) {
    if (i == 0) return begun.wait();
    begun.set();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the caller falls asleep
    is_done = true;
  });
  EXPECT_TRUE(is_done);
}

TEST(Helpers, ThrowTheFirstException) {
  Helpers helpers(2);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> begun{0};
    const auto fail = [&](int64_t i) {
      ++begun;
      if (i == round % 30) throw std::runtime_error("part " + std::to_string(i));
    };
    try {
      run(helpers, 30, 3, fail);
      ADD_FAILURE() << "an exception is lost";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "part " + std::to_string(round % 30));
    }
    EXPECT_LE(begun, 30);
    EXPECT_TRUE(runs_each_once(helpers, 30, 3));
  }
}

TEST(Helpers, RunLoopsInsidePartsInTheirThread) {
  Helpers helpers(2);
  std::atomic<int> elsewhere{0}, inner{0};
  run(helpers, 12, 3, [&](int64_t) {
    const auto thread = std::this_thread::get_id();
    EXPECT_EQ(helpers.threads(3), 1);
    run(helpers, 4, 3, [&](int64_t) {
      ++inner;
      elsewhere += std::this_thread::get_id() == thread ? 0 : 1;
    });
  });
  EXPECT_EQ(inner, 48);
  EXPECT_EQ(elsewhere, 0);
}

TEST(Helpers, LeaveLoopsToTheirCallersOnceStopped) {
  Helpers helpers(2);
  EXPECT_TRUE(runs_each_once(helpers, 50, 3));
  helpers.stop();
  const auto caller = std::this_thread::get_id();
  run(helpers, 50, 3, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  helpers.stop();
}

TEST(Helpers, MayBeStoppedBesideACaller) {
  for (int round = 0; round < 30; ++round) {
    Helpers helpers(2);
    Event begun;
    std::thread caller([&] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_TRUE(runs_each_once(helpers, 9, 3));
        begun.set();
      }
    });
    begun.wait();
    helpers.stop();
    caller.join();
  }
}

TEST(Helpers, NoneIsNoError) {
  Helpers helpers(0);
  EXPECT_EQ(helpers.threads(8), 1);
  EXPECT_TRUE(runs_each_once(helpers, 20, 8));
}

// The child of a fork has none of its parent's threads.
TEST(Helpers, OfAForkedChildAreItsOwn) {
  EXPECT_TRUE(runs_each_once(helpers(), 50, 4));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) std::exit(runs_each_once(helpers(), 50, 4) ? 0 : 1);  // with its destructors
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(runs_each_once(helpers(), 50, 4));
}

}  // namespace
}  // namespace posenc::platform
