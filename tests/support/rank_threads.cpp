#include "support/rank_threads.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "posenc/train/gloo.h"
#include "support/threads.h"

namespace posenc::testing {

void run_ranks(int size, const std::function<void(const RankGroup& group)>& work,
               std::chrono::milliseconds timeout) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto meeting = GroupOptions().timeout(std::chrono::minutes(10));
  const auto met = [&](const RankGroup& group) {
    if (size > 1) group.barrier();
    set_timeout(group, timeout);
    work(group);
  };
  run_rank_threads(size, met, [&](int rank) { return gloo_group(store, rank, size, meeting); });
}

void set_timeout(const RankGroup& group, std::chrono::milliseconds timeout) {
  group->getBackend(c10::kCPU)->setTimeout(timeout);
}

void run_rank_threads(int size, const std::function<void(const RankGroup& group)>& work,
                      const std::function<RankGroup(int rank)>& make_group) {
  const testing::Threads threads(1);  // new threads take over this number
  std::vector<RankGroup> groups(static_cast<size_t>(size));
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](int rank) {
    try {
      RankGroup& group = groups[static_cast<size_t>(rank)];
      group = make_group(rank);
      work(
          group);  // the group then lives until all have finished, or the slower ones would lose it
    } catch (...) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!first) first = std::current_exception();
      }
      groups[static_cast<size_t>(rank)] = {};  // wakes the others
    }
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(run, rank);
  for (std::thread& rank : ranks) rank.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace posenc::testing
