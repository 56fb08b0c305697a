#pragma once

#include <cstdint>
#include <vector>

#include "posenc/train/pair_loader.h"

namespace posenc::testing {

/// Targets of 1 to 5 labels, so that the shares of a batch have different weights, and one pair
/// more than fills the batches: of its batch, all processes but the first get nothing.
inline std::vector<TokenPair> uneven_pairs() {
  std::vector<TokenPair> pairs = {{{3, 4, 5, 6, 7, 8}, {1, 3, 4, 2}}};
  for (int64_t i = 0; i < 42; ++i) {
    TokenPair pair{{3 + i % 6, 3 + i % 5}, {1}};
    for (int64_t k = 0; k <= i % 4; ++k) pair.tgt.push_back(3 + (i + k) % 6);
    pair.tgt.push_back(2);
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace posenc::testing
