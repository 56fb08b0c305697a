#pragma once

#include <posenc/train/group.h>

#include <cstdint>

namespace pronounce {

/// The processes that train together with this one: those that start_ranks() started, or those of a
/// launcher such as torchrun. Empty for a single process, and where posenc was built without Gloo.
posenc::RankGroup join_ranks();

/// Whether this process is to start_ranks(), and was not started by it.
bool starts_ranks(int64_t ranks);

/// Runs this program with these arguments in `ranks` processes, which meet in a new folder. Passes
/// SIGINT and SIGTERM on to them. Returns the first exit status other than 0, as of a shell.
int start_ranks(int64_t ranks, char** argv);

}  // namespace pronounce
