#pragma once

#include <functional>

#include "posenc/parallel/group.h"

namespace posenc::test {

/// Runs `work` as each rank of a Gloo group of `size` threads of this process, which meet in a
/// HashStore, with one thread each for LibTorch. Rethrows the exception of the lowest rank that
/// threw; the others are woken, as their peers' sockets close. The default generator is the
/// process's: make modules and draw numbers before, or use generators of each rank's own.
void run_ranks(int size, const std::function<void(const RankGroup& group)>& work);

}  // namespace posenc::test
