#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace posenc::text {

/// Joins neighbours of a row of symbols, as BPE does: those of the lowest rank first, and of equal
/// ranks the leftmost. Symbols are known by their index; the left one of two becomes both. Keeps
/// its memory from row to row.
template <typename Rank>
class Joiner {
 public:
  /// Two neighbours that may be joined.
  struct Pair {
    Rank rank;
    uint32_t left;
    uint32_t mark;  // by which they are known again when it is their turn

    bool operator<(const Pair& other) const {  // the largest of a heap comes first
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  /// Joins a row of `count` symbols. `rules` has: `find(left, right, pair)`, whether two neighbours
  /// may be joined, which gives their pair its rank and its mark; `holds(pair, right)`, whether the
  /// pair is still one when the symbol after its left one is `right`; and `join(pair, right)`,
  /// which changes both symbols. With `all_places`, pairs of one rank are joined before others are
  /// found.
  template <typename Rules>
  void join(std::size_t count, Rules&& rules, bool all_places = false) {
    const auto end = static_cast<uint32_t>(count);
    previous_.resize(count);
    next_.resize(count);
    queue_.clear();
    for (uint32_t i = 0; i < end; ++i) {
      previous_[i] = i - 1;  // kEnd at the begin
      next_[i] = i + 1 == end ? kEnd : i + 1;
    }
    for (uint32_t i = 0; i + 1 < end; ++i) find(i, rules);
    std::make_heap(queue_.begin(), queue_.end());
    while (!queue_.empty()) {
      joined_.clear();
      const Rank rank = queue_.front().rank;
      do {
        std::pop_heap(queue_.begin(), queue_.end());
        const Pair pair = queue_.back();
        queue_.pop_back();
        const uint32_t right = next_[pair.left];  // kEnd also of one that was joined to another
        if (right == kEnd || !rules.holds(pair, right)) continue;
        rules.join(pair, right);
        next_[pair.left] = next_[right];
        if (next_[right] != kEnd) previous_[next_[right]] = pair.left;
        next_[right] = kEnd;
        joined_.push_back(pair.left);
      } while (all_places && !queue_.empty() && queue_.front().rank == rank);
      for (const uint32_t left : joined_) {
        push(previous_[left], rules);
        push(left, rules);
      }
    }
  }

 private:
  static constexpr uint32_t kEnd = UINT32_MAX;

  template <typename Rules>
  bool find(uint32_t left, Rules&& rules) {
    Pair pair{{}, left, 0};
    if (!rules.find(left, next_[left], pair)) return false;
    queue_.push_back(pair);
    return true;
  }
  template <typename Rules>
  void push(uint32_t left, Rules&& rules) {
    if (left == kEnd || next_[left] == kEnd || !find(left, rules)) return;
    std::push_heap(queue_.begin(), queue_.end());
  }

  std::vector<Pair> queue_;  // a heap
  std::vector<uint32_t> previous_, next_, joined_;
};

/// The symbols of a row that are parts of one text: what a Joiner's rules are made of.
struct TextSymbols {
  std::vector<std::string_view> texts;  // of one that was joined to another: empty

  /// The text of two neighbours.
  std::string_view both(uint32_t left, uint32_t right) const {
    return {texts[left].data(), texts[left].size() + texts[right].size()};
  }
  /// `mark` is the size of both.
  template <typename Pair>
  bool holds(const Pair& pair, uint32_t right) const {
    return both(pair.left, right).size() == pair.mark;
  }
  template <typename Pair>
  void join(const Pair& pair, uint32_t right) {
    texts[pair.left] = both(pair.left, right);
    texts[right] = {};
  }
};

}  // namespace posenc::text
