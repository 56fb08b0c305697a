#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "posenc/train/group.h"

namespace posenc::testing {

/// One rank's calls of one collective.
struct CollectiveCount {
  int64_t calls = 0;
  /// The bytes that the rank passed to the collective: the tensor that is summed or broadcast, the
  /// rank's own part of a gather.
  int64_t bytes = 0;
  /// The bytes that a rank of W sends to others, in a ring: 2 (W - 1) / W times what is summed,
  /// W - 1 times its part of a gather; of a broadcast (W - 1) / W, the mean over the ranks.
  double sent = 0;
};

/// By name: "all_reduce", "all_gather", "broadcast".
using Traffic = std::map<std::string, CollectiveCount>;

/// Runs `work` as each rank of an in-process group of `size` threads, whose collectives are
/// computed in memory, without sockets, and counted: for large groups. The sums are in the order of
/// the ranks. Collectives block from their start until all ranks have called them; ranks that call
/// different ones, or with other sizes or dtypes, all get an error. Otherwise like run_ranks().
void run_counted_ranks(int size, const std::function<void(const RankGroup& group)>& work);

/// The calling rank's traffic since the group began or reset_traffic() was called.
Traffic traffic(const RankGroup& group);
void reset_traffic(const RankGroup& group);

}  // namespace posenc::testing
