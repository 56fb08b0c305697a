#include "posenc/parallel/vocab_shard.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace posenc {

VocabShard VocabShard::of(int64_t vocab, int64_t rank, int64_t ranks) {
  TORCH_CHECK_VALUE(vocab > 0, "[VocabShard] vocab must be at least 1. Got ", vocab);
  TORCH_CHECK_VALUE(rank >= 0 && rank < ranks, "[VocabShard] rank must lie in [0, ", ranks,
                    "). Got ", rank);
  const int64_t most = vocab / ranks + (vocab % ranks != 0 ? 1 : 0);
  const int64_t first = std::min(most * rank, vocab);
  return {first, std::min(first + most, vocab), vocab};
}

}  // namespace posenc
