#pragma once

#include <cstdint>
#include <vector>

#include "cli/pronounce/lexicon.h"

namespace posenc::cli {

/// How far words as they were said are from what a dictionary says.
struct Score {
  int64_t words = 0;
  int64_t right = 0;         ///< words that were said in one of the dictionary's ways
  int64_t errors = 0;        ///< phonemes to insert, delete and replace, to the nearest way
  int64_t phonemes = 0;      ///< of the nearest ways
  int64_t first_errors = 0;  ///< the same to the first way
  int64_t first_phonemes = 0;

  /// Errors per phoneme of the dictionary: the phoneme error rate.
  double error_rate() const;
  double first_error_rate() const;
  double share_right() const;
};

/// `said` has one pronunciation for each entry.
Score score(const std::vector<Phonemes>& said, const std::vector<LexiconEntry>& entries);

}  // namespace posenc::cli
