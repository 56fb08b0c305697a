#pragma once

#include <cstdint>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Which tokens the processes of a group pass to the functions and modules that split a vocabulary.
enum class RankTokens {
  Same,  ///< all processes the same tokens: the model's body is replicated work
  Own,   ///< each its own share of the batch: the body is data-parallel, only the ends are sharded
};

/// The rows [first, last) of a matrix of `vocab` rows that a process of a group holds, by the rule
/// of torch.chunk and of DTensor's Shard(0): ceil(vocab / ranks) rows each, the last processes
/// fewer or none.
struct VocabShard {
  int64_t first = 0;  ///< the first row
  int64_t last = 0;   ///< the row after the last one
  int64_t vocab = 0;  ///< the number of rows of the whole matrix

  /// Number of rows of this shard.
  int64_t rows() const noexcept { return last - first; }
  /// The shard of `rank`.
  ///
  /// Errors: c10::ValueError for a vocab below 1 and a rank outside [0, ranks).
  static VocabShard of(int64_t vocab, int64_t rank, int64_t ranks);
};

}  // namespace posenc
