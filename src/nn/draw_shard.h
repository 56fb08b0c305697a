#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "posenc/parallel/group.h"
#include "posenc/parallel/vocab_shard.h"

namespace posenc {

/// The rows of a matrix of `vocab_size` rows that this process holds; all of them without a group.
inline VocabShard shard_of(int64_t vocab_size, const RankGroup& group) {
  return VocabShard::of(vocab_size, group.rank(), group.size());
}

/// Fills `rows`, those of `shard`, with the numbers that `draw` would write into them if it filled
/// the whole tensor in place, so that processes whose generators are in the same state hold the
/// initial weights of one process. All numbers are drawn, which takes as long as for the whole
/// tensor, but needs only the memory of a block of 4,096 to 8,191 rows. On the CPU.
void draw_shard(const at::Tensor& rows, const VocabShard& shard,
                const std::function<void(const at::Tensor& block)>& draw);

}  // namespace posenc
