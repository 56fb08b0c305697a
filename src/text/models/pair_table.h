#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/text_hash.h"

namespace posenc::text {

/// The merges of BPE by the ids of the two tokens: open-addressed, in one array.
class PairTable {
 public:
  static constexpr uint32_t kNoRank = UINT32_MAX;

  struct Merged {
    uint32_t rank = kNoRank;  // kNoRank if the pair is none
    uint32_t id = 0;
  };

  explicit PairTable(std::size_t count) : slots_(std::bit_ceil(count + count / 2 + 1)) {}

  /// Of equal pairs the last counts.
  void add(uint32_t left, uint32_t right, Merged merged) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash_(left, right) & mask;
    while (slots_[at].merged.rank != kNoRank && !slots_[at].is(left, right)) at = (at + 1) & mask;
    slots_[at] = {left, right, merged};
  }

  Merged find(uint32_t left, uint32_t right) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash_(left, right) & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.merged.rank == kNoRank || slot.is(left, right)) return slot.merged;
    }
  }

 private:
  struct Slot {
    uint32_t left = 0, right = 0;
    Merged merged;

    bool is(uint32_t other_left, uint32_t other_right) const {
      return left == other_left && right == other_right;
    }
  };

  TextHash hash_;
  std::vector<Slot> slots_;  // a power of two
};

}  // namespace posenc::text
