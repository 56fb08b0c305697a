#pragma once

#include <cstdint>
#include <vector>

#include "tokenizers/models/pair_table.h"

namespace posenc::text {

/// A part of a word: a token, and how many bytes of the word it stands for.
struct Symbol {
  uint32_t id, size;
};

/// Joins the symbols of a word as far as merges go. Keeps its memory from word to word.
class SymbolMerger {
 public:
  /// `always_by_queue` merges short words as long ones are.
  void merge(std::vector<Symbol>& symbols, const PairTable& pairs, bool always_by_queue);

 private:
  // A pair of neighbours that may be joined: to `id`, at the symbol `at`.
  struct Candidate {
    uint32_t rank, at, id;

    bool operator<(const Candidate& other) const {  // the largest of a heap comes first
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void merge_by_scan(std::vector<Symbol>& symbols, const PairTable& pairs);
  void merge_by_queue(std::vector<Symbol>& symbols, const PairTable& pairs);
  void propose(const std::vector<Symbol>& symbols, const PairTable& pairs, uint32_t at);

  std::vector<Candidate> queue_;
  std::vector<uint32_t> previous_, next_;
};

}  // namespace posenc::text
