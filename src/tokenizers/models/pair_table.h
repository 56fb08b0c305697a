#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tokenizers/models/text_hash.h"

namespace posenc::text {

/// The merges of BPE by the ids of the two tokens: open-addressed, in one array. Most pairs that it
/// is asked for are none, which a filter tells that stays in the processor's caches, as the array
/// does not.
class PairTable {
 public:
  static constexpr uint32_t kNoRank = UINT32_MAX;

  struct Merged {
    uint32_t rank = kNoRank;  // kNoRank if the pair is none
    uint32_t id = 0;
  };

  explicit PairTable(std::size_t count)
      : slots_(std::bit_ceil(count + count / 2 + 1)),
        filter_(std::bit_ceil(count * kFilterBits / 64 + 1)),
        filter_shift_(64 - static_cast<unsigned>(std::countr_zero(64 * filter_.size()))) {}

  /// Of equal pairs the last counts.
  void add(uint32_t left, uint32_t right, Merged merged) {
    const std::size_t mask = slots_.size() - 1;
    const uint64_t hash = hash_(left, right);
    filter_[hash >> filter_shift_ >> 6] |= uint64_t{1} << (hash >> filter_shift_ & 63);
    std::size_t at = hash & mask;
    while (slots_[at].merged.rank != kNoRank && !slots_[at].is(left, right)) at = (at + 1) & mask;
    slots_[at] = {left, right, merged};
  }

  Merged find(uint32_t left, uint32_t right) const { return find(left, right, hash_(left, right)); }

  /// The same in two steps: what is prefetched for several pairs comes at the same time.
  uint64_t prefetch(uint32_t left, uint32_t right) const {
    const uint64_t hash = hash_(left, right);
    __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
    return hash;
  }
  Merged find(uint32_t left, uint32_t right, uint64_t hash) const {
    if ((filter_[hash >> filter_shift_ >> 6] >> (hash >> filter_shift_ & 63) & 1) == 0) return {};
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
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

  static constexpr std::size_t kFilterBits = 16;  // for each merge

  TextHash hash_;
  std::vector<Slot> slots_;       // a power of two
  std::vector<uint64_t> filter_;  // a power of two; a bit for the hash of each merge
  unsigned filter_shift_;
};

}  // namespace posenc::text
