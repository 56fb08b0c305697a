#include "tokenizers/models/bpe_symbols.h"

namespace posenc::text {
namespace {

constexpr std::size_t kScanned = 24;  // more symbols are joined faster by a queue

// By ids. As in the package, a pair holds as long as its place has one that joins to the same
// token, which is its mark.
struct RulesOfIds {
  std::vector<Symbol>& symbols;
  const PairTable& pairs;

  using Pair = Joiner<uint32_t>::Pair;
  bool find(uint32_t left, uint32_t right, Pair& pair) const {
    const auto [rank, id] = pairs.find(symbols[left].id, symbols[right].id);
    pair.rank = rank;
    pair.mark = id;
    return rank != PairTable::kNoRank;
  }
  bool holds(const Pair& pair, uint32_t right) const {
    Pair now = pair;
    return find(pair.left, right, now) && now.mark == pair.mark;
  }
  void join(const Pair& pair, uint32_t right) {
    symbols[pair.left] = {pair.mark, symbols[pair.left].size + symbols[right].size};
    symbols[right].size = 0;
  }
};

}  // namespace

void SymbolMerger::merge(std::vector<Symbol>& symbols, const PairTable& pairs,
                         bool always_by_queue) {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kScanned && !always_by_queue) {
    merge_by_scan(symbols, pairs);
  } else {
    joiner_.join(symbols.size(), RulesOfIds{symbols, pairs});
    std::erase_if(symbols, [](const Symbol& symbol) { return symbol.size == 0; });
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

}  // namespace posenc::text
