#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace posenc::cli {

using Phonemes = std::vector<std::string>;

/// A word in small letters, and how it may be said, the usual way first.
struct LexiconEntry {
  std::string word;
  std::vector<Phonemes> pronunciations;
};

struct Lexicon {
  std::vector<LexiconEntry> entries;  ///< in the order of the alphabet, each word once
  int64_t left_out = 0;               ///< words with other characters than a-z
};

/// Reads a dictionary in the format of CMU's: a line a pronunciation, `word P1 P2 ... # comment`,
/// where `word(2)` is another pronunciation of `word` and digits behind a vowel are its stress,
/// which is left out. Lines that begin with `;;;` are comments. Refuses a file without words, and a
/// line without phonemes, by its number.
Lexicon read_lexicon(const std::string& path);

struct Split {
  std::vector<LexiconEntry> train, held_out;
};

/// `held_out` words by chance, the same ones for one seed, with all their pronunciations. Refuses
/// to leave no word to train on.
Split hold_out(const Lexicon& lexicon, int64_t held_out, int64_t seed);

}  // namespace posenc::cli
