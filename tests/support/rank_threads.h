#pragma once

#include <chrono>
#include <functional>

#include "posenc/train/group.h"

namespace posenc::testing {

/// Runs `work` as each rank of a Gloo group of `size` threads of this process, which meet in a
/// HashStore, with one thread each for LibTorch. Rethrows the exception that was thrown first; the
/// other ranks are woken, as their peers' sockets close, provided that `work` kept no copy of the
/// group. The default generator is the process's: make modules and draw numbers before, or
/// use generators of each rank's own. `timeout` is that of a collective once all have met.
void run_ranks(int size, const std::function<void(const RankGroup& group)>& work,
               std::chrono::milliseconds timeout = std::chrono::minutes(10));

/// Sets the time-out of the next collectives of a group, which has met.
void set_timeout(const RankGroup& group, std::chrono::milliseconds timeout);

/// The same with groups that `make_group` makes on each thread.
void run_rank_threads(int size, const std::function<void(const RankGroup& group)>& work,
                      const std::function<RankGroup(int rank)>& make_group);

}  // namespace posenc::testing
