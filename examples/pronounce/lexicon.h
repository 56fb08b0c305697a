#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pronounce {

using Phonemes = std::vector<std::string>;

/// A lowercase word and its pronunciations, the most common one first.
struct LexiconEntry {
  std::string word;
  std::vector<Phonemes> pronunciations;
};

struct Lexicon {
  std::vector<LexiconEntry> entries;  ///< in alphabetical order, each word once
  int64_t left_out = 0;               ///< words with characters other than a-z
};

/// Reads a dictionary in the format of CMUdict: one pronunciation per line, `word P1 P2 ... #
/// comment`. `word(2)` is another pronunciation of `word`; digits after a vowel mark its stress and
/// are dropped. Lines that begin with `;;;` are comments. Throws for a file without words, and for
/// a line without phonemes, with its number.
Lexicon read_lexicon(const std::string& path);

struct Split {
  std::vector<LexiconEntry> train, held_out;
};

/// Holds out `held_out` random words with all their pronunciations. The same seed selects the same
/// words on every machine. Throws if no word is left to train on.
Split hold_out(const Lexicon& lexicon, int64_t held_out, int64_t seed);

}  // namespace pronounce
