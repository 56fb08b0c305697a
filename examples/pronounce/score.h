#pragma once

#include <cstdint>
#include <vector>

#include "lexicon.h"

namespace pronounce {

/// Compares predicted pronunciations with a dictionary's.
struct Score {
  int64_t words = 0;
  int64_t right = 0;         ///< words predicted as one of the dictionary's pronunciations
  int64_t errors = 0;        ///< insertions, deletions and substitutions to the nearest one
  int64_t phonemes = 0;      ///< in the nearest ones
  int64_t first_errors = 0;  ///< the same for the first one
  int64_t first_phonemes = 0;

  /// Phoneme error rate: errors per phoneme of the dictionary.
  double error_rate() const;
  double first_error_rate() const;
  double share_right() const;
};

/// `predicted` has one pronunciation per entry.
Score score(const std::vector<Phonemes>& predicted, const std::vector<LexiconEntry>& entries);

}  // namespace pronounce
