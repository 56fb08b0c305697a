#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pronounce {

using Phonemes = std::vector<std::string>;

/// A word in small letters, and how it may be said, the usual way first.
struct LexiconEntry {
  std::string word;
  std::vector<Phonemes> pronunciations;
};

struct Lexicon {
  std::vector<LexiconEntry> entries;  ///< in alphabetical order, each word once
  int64_t left_out = 0;               ///< words with characters other than a-z
};

/// Reads a dictionary in the format of CMU's: one pronunciation a line, `word P1 P2 ... # comment`,
/// where `word(2)` is another pronunciation of `word`, and digits after a vowel are its stress,
/// which is dropped. Lines that begin with `;;;` are comments. Throws for a file without words, and
/// for a line without phonemes, with its number.
Lexicon read_lexicon(const std::string& path);

struct Split {
  std::vector<LexiconEntry> train, held_out;
};

/// Holds out `held_out` random words, with all their pronunciations; the same seed gives the same
/// words on every machine. Throws where that leaves no word to train on.
Split hold_out(const Lexicon& lexicon, int64_t held_out, int64_t seed);

}  // namespace pronounce
