#include "tokenizers/models/bpe_symbols.h"

#include <algorithm>

namespace posenc::text {
namespace {

constexpr std::size_t kScanned = 24;  // more symbols are joined faster by a queue
constexpr uint32_t kEnd = UINT32_MAX;

}  // namespace

void SymbolMerger::merge(std::vector<Symbol>& symbols, const PairTable& pairs,
                         bool always_by_queue) {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kScanned && !always_by_queue) {
    merge_by_scan(symbols, pairs);
  } else {
    merge_by_queue(symbols, pairs);
  }
}

void SymbolMerger::merge_by_scan(std::vector<Symbol>& symbols, const PairTable& pairs) {
  PairTable::Merged merged[kScanned];  // of each symbol and the next
  std::size_t last = symbols.size() - 1;
  uint64_t hashes[kScanned];
  for (std::size_t i = 0; i < last; ++i)
    hashes[i] = pairs.prefetch(symbols[i].id, symbols[i + 1].id);
  for (std::size_t i = 0; i < last; ++i)
    merged[i] = pairs.find(symbols[i].id, symbols[i + 1].id, hashes[i]);
  while (last > 0) {
    std::size_t at = 0;
    for (std::size_t i = 1; i < last; ++i) at = merged[i].rank < merged[at].rank ? i : at;
    if (merged[at].rank == PairTable::kNoRank) break;
    symbols[at] = {merged[at].id, symbols[at].size + symbols[at + 1].size};
    uint64_t before = 0, after = 0;
    if (at > 0) before = pairs.prefetch(symbols[at - 1].id, symbols[at].id);
    if (at + 1 < last) after = pairs.prefetch(symbols[at].id, symbols[at + 2].id);
    for (std::size_t i = at + 1; i < last; ++i) symbols[i] = symbols[i + 1];
    --last;
    for (std::size_t i = at + 1; i < last; ++i) merged[i] = merged[i + 1];
    if (at < last) merged[at] = pairs.find(symbols[at].id, symbols[at + 1].id, after);
    if (at > 0) merged[at - 1] = pairs.find(symbols[at - 1].id, symbols[at].id, before);
  }
  symbols.resize(last + 1);
}

// Queues the pair of symbol `at` and the next.
void SymbolMerger::propose(const std::vector<Symbol>& symbols, const PairTable& pairs,
                           uint32_t at) {
  const auto [rank, id] = pairs.find(symbols[at].id, symbols[next_[at]].id);
  if (rank == PairTable::kNoRank) return;
  queue_.push_back({rank, at, id});
}

void SymbolMerger::merge_by_queue(std::vector<Symbol>& symbols, const PairTable& pairs) {
  const auto count = static_cast<uint32_t>(symbols.size());
  previous_.resize(count);
  next_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    previous_[i] = i - 1;  // kEnd at the begin
    next_[i] = i + 1 == count ? kEnd : i + 1;
  }
  queue_.clear();
  for (uint32_t i = 0; i + 1 < count; ++i) propose(symbols, pairs, i);
  std::make_heap(queue_.begin(), queue_.end());
  const auto push = [&](uint32_t at) {
    const std::size_t before = queue_.size();
    propose(symbols, pairs, at);
    if (queue_.size() > before) std::push_heap(queue_.begin(), queue_.end());
  };
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const Candidate best = queue_.back();
    queue_.pop_back();
    Symbol& left = symbols[best.at];
    const uint32_t next = next_[best.at];
    if (left.size == 0 || next == kEnd) continue;
    // As in the package, a candidate holds as long as its place has a pair that joins to the same
    // token.
    const PairTable::Merged merged = pairs.find(left.id, symbols[next].id);
    if (merged.rank == PairTable::kNoRank || merged.id != best.id) continue;
    left = {best.id, left.size + symbols[next].size};
    symbols[next].size = 0;
    next_[best.at] = next_[next];
    if (next_[next] != kEnd) previous_[next_[next]] = best.at;
    if (previous_[best.at] != kEnd) push(previous_[best.at]);
    if (next_[best.at] != kEnd) push(best.at);
  }
  symbols.erase(
      std::remove_if(symbols.begin(), symbols.end(), [](const Symbol& s) { return s.size == 0; }),
      symbols.end());
}

}  // namespace posenc::text
