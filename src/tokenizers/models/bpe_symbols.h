#pragma once

#include <cstdint>
#include <vector>

#include "tokenizers/models/joiner.h"
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
  void merge_by_scan(std::vector<Symbol>& symbols, const PairTable& pairs);

  Joiner<uint32_t> joiner_;
};

}  // namespace posenc::text
