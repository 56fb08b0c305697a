#include "tokenizers/python/word_merges.h"

#include <algorithm>

#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

// A symbol of a word; one that was joined to the symbol before it is empty.
struct MergedSymbol {
  std::string_view text;
  int32_t previous, next;  // -1 at the ends
};

// Two neighbours that may be joined. The lowest rank comes first, then the leftmost.
struct RankedPair {
  uint32_t rank;
  int32_t left, right;
  std::size_t size;  // of both, when they were found

  bool operator<(const RankedPair& other) const {
    return rank > other.rank || (rank == other.rank && left > other.left);
  }
};

}  // namespace

void WordMerges::add(std::string_view left, std::string_view right) {
  std::string both(left);
  both.append(" ").append(right);
  ranks_[std::move(both)] = count_++;
}

uint32_t WordMerges::rank(std::string_view left, std::string_view right) const {
  std::string both(left);
  both.append(" ").append(right);
  const auto found = ranks_.find(both);
  return found == ranks_.end() ? kNone : found->second;
}

void WordMerges::split(std::string_view word, std::vector<std::string_view>& symbols) const {
  std::vector<MergedSymbol> all;
  const std::size_t end = word.size() - kSuffix.size();
  for (std::size_t at = 0; at < end;) {
    const std::size_t begin = at;
    next_character(word, at);
    const auto index = static_cast<int32_t>(all.size());
    const std::size_t last = at == end ? word.size() : at;
    all.push_back({word.substr(begin, last - begin), index - 1, at == end ? -1 : index + 1});
  }
  std::vector<RankedPair> pairs, best;
  const auto push = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const std::string_view first = all[static_cast<std::size_t>(left)].text;
    const std::string_view second = all[static_cast<std::size_t>(right)].text;
    const uint32_t found = rank(first, second);
    if (found == kNone) return;
    pairs.push_back({found, left, right, first.size() + second.size()});
    std::push_heap(pairs.begin(), pairs.end());
  };
  for (std::size_t i = 1; i < all.size(); ++i)
    push(static_cast<int32_t>(i - 1), static_cast<int32_t>(i));
  while (!pairs.empty()) {
    best.clear();  // all places of the best pair; joining them makes others, of any rank
    const uint32_t rank = pairs.front().rank;
    while (!pairs.empty() && pairs.front().rank == rank) {
      best.push_back(pairs.front());
      std::pop_heap(pairs.begin(), pairs.end());
      pairs.pop_back();
    }
    for (const RankedPair& pair : best) {
      MergedSymbol& left = all[static_cast<std::size_t>(pair.left)];
      MergedSymbol& right = all[static_cast<std::size_t>(pair.right)];
      if (left.text.empty() || right.text.empty() || left.next != pair.right ||
          left.text.size() + right.text.size() != pair.size)
        continue;
      left.text = {left.text.data(), pair.size};
      left.next = right.next;
      right.text = {};
      if (left.next >= 0) all[static_cast<std::size_t>(left.next)].previous = pair.left;
    }
    for (const RankedPair& pair : best) {
      const MergedSymbol& joined = all[static_cast<std::size_t>(pair.left)];
      if (joined.text.size() != pair.size) continue;
      push(joined.previous, pair.left);
      push(pair.left, joined.next);
    }
  }
  symbols.clear();
  for (int32_t i = all.empty() ? -1 : 0; i != -1; i = all[static_cast<std::size_t>(i)].next)
    symbols.push_back(all[static_cast<std::size_t>(i)].text);
}

}  // namespace posenc::text
