#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// A word of a segment.
struct TranscriptWord {
  std::string text;    ///< with the space before it and its punctuation
  double start = 0.0;  ///< in seconds from the beginning of the sound, rounded to 0.01
  double end = 0.0;    ///< the same
};

/// What a model writes between two of its timestamps.
struct TranscriptSegment {
  double start = 0.0;                      ///< in seconds from the beginning of the sound
  double end = 0.0;                        ///< the same
  std::string text = {};                   ///< without special tokens and timestamps
  std::vector<int64_t> tokens = {};        ///< timestamps among them
  std::vector<float> token_times = {};     ///< of each token, in seconds, with Timestamps::Word
  std::vector<TranscriptWord> words = {};  ///< with Timestamps::Word
};

/// The text of a sound.
struct Transcript {
  std::string text;                         ///< without special tokens and timestamps
  std::optional<std::string> language;      ///< "en": the code in the language's token, if any
  std::optional<int64_t> language_id;       ///< that token
  std::vector<int64_t> tokens;              ///< of all segments
  double duration = 0.0;                    ///< of the sound, in seconds
  std::vector<TranscriptSegment> segments;  ///< in their order
};

}  // namespace posenc
