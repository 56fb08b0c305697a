// at::parallel_for is inline: in a build without OpenMP it silently runs on one thread.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

namespace posenc {
namespace {

TEST(Threads, ParallelForUsesTwo) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  at::parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    const std::lock_guard<std::mutex> lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  at::set_num_threads(before);
  EXPECT_EQ(seen.size(), 2u);
}

}  // namespace
}  // namespace posenc
