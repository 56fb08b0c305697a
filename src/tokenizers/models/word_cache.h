#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tokenizers/models/model.h"
#include "tokenizers/models/text_hash.h"

namespace posenc::text {

/// The tokens of words that a thread has met. Its memory is bounded: when it is full, it begins
/// anew. What it is asked for is mostly not in the processor's caches, so all of a word is in one
/// place.
class WordCache {
 public:
  /// Longer words, in bytes, are not kept.
  static constexpr std::size_t kLongest = 128;

  /// Adds the tokens of `word`; returns false if it is not known. `hash` is for add().
  bool find(std::string_view word, uint64_t& hash, std::vector<Token>& tokens) const {
    hash = hash_(word);
    if (slots_.empty()) return false;
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask; slots_[at].entry != 0; at = (at + 1) & mask) {
      if (slots_[at].tag != static_cast<uint32_t>(hash >> 32)) continue;
      const uint32_t* entry = memory_.data() + slots_[at].entry - 1;
      const uint32_t size = *entry & 0xFFFF, count = *entry >> 16;
      const char* text = reinterpret_cast<const char*>(entry + 1);
      if (size != word.size() || !are_equal(text, word.data(), size)) continue;
      const uint32_t* stored = entry + 1 + units(size);
      const std::size_t before = tokens.size();
      tokens.resize(before + count);
      for (uint32_t i = 0; i < count; ++i, stored += 2) {
        tokens[before + i] = {stored[0], stored[1] & 0x7FFF, stored[1] >> 16,
                              (stored[1] & 0x8000) != 0};
      }
      return true;
    }
    return false;
  }

  /// Keeps the tokens of `word`, which find() did not know and gave this hash.
  void add(std::string_view word, uint64_t hash, const Token* first, const Token* last);

 private:
  struct Slot {
    uint32_t tag;    // the upper half of the hash
    uint32_t entry;  // where it begins in memory_, plus 1; 0 for a free slot
  };

  static std::size_t units(std::size_t bytes) { return (bytes + 3) / 4; }
  static bool are_equal(const char* a, const char* b, std::size_t size) {
    if (size < 8) return std::memcmp(a, b, size) == 0;
    const auto differ = [&](std::size_t at) {
      uint64_t of_a, of_b;
      std::memcpy(&of_a, a + at, 8);
      std::memcpy(&of_b, b + at, 8);
      return of_a != of_b;
    };
    for (std::size_t at = 0; at + 8 < size; at += 8) {
      if (differ(at)) return false;
    }
    return !differ(size - 8);
  }
  void insert(uint64_t hash, std::size_t entry);
  void grow();

  TextHash hash_;
  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  // An entry is the size of the word and the number of its tokens, 16 bits each, the word, and for
  // each token its id, and 16 bits of begin and end; the highest of begin is Token::surface.
  std::vector<uint32_t> memory_;
  std::size_t count_ = 0;
};

}  // namespace posenc::text
