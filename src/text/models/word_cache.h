#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/models/model.h"
#include "text/text_hash.h"

namespace posenc::text {

/// The tokens of words that a thread has met. Its memory is bounded: when it is full, it begins
/// anew.
class WordCache {
 public:
  /// Longer words, in bytes, are not kept.
  static constexpr std::size_t kLongest = 128;

  /// Adds the tokens of `word`; returns false if it is not known. `hash` is for add().
  bool find(std::string_view word, uint64_t& hash, std::vector<Token>& tokens) const {
    hash = hash_(word);
    if (slots_.empty()) return false;
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask; slots_[at].word != 0; at = (at + 1) & mask) {
      if (slots_[at].tag != static_cast<uint32_t>(hash >> 32)) continue;
      const Word& known = words_[slots_[at].word - 1];
      if (known.size != word.size() ||
          std::memcmp(texts_.data() + known.text, word.data(), word.size()) != 0)
        continue;
      const Token* first = tokens_.data() + known.tokens;
      tokens.insert(tokens.end(), first, first + known.count);
      return true;
    }
    return false;
  }

  /// Keeps the tokens of `word`, which find() did not know and gave this hash.
  void add(std::string_view word, uint64_t hash, const Token* first, const Token* last);

 private:
  struct Slot {
    uint32_t tag;   // the upper half of the hash
    uint32_t word;  // the index in words_, plus 1; 0 for a free slot
  };
  struct Word {
    uint32_t text, tokens;  // where they begin
    uint32_t size, count;
  };

  void grow();

  TextHash hash_;
  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  std::vector<Word> words_;
  std::vector<char> texts_;
  std::vector<Token> tokens_;
};

}  // namespace posenc::text
