#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "speech/generation/settings.h"

// What is before a window's text.
namespace posenc::speech {

/// Whether the language of a sound has to be detected.
bool detects_language(const RecognitionSettings& settings);

/// The tokens that begin each window of a sound, of `sounds`: the first one, the language, the task
/// and that there are no timestamps. `detected` is the language's token where it has to be. Throws
/// c10::ValueError for a language that the model lacks.
Tokens initial_tokens(const RecognitionSettings& settings, int64_t sound, int64_t sounds,
                      bool timestamps, std::optional<int64_t> detected);

/// What a window's search begins with.
struct Prefix {
  Tokens tokens;
  int64_t hidden = 0;  ///< number of tokens that were left out, since nothing attends to padding
  int64_t begin = 0;   ///< where the initial tokens begin
};

/// The prefix of a window after the `texts` of a sound so far, its segments' tokens.
Prefix prefix_of(const RecognitionSettings& settings, const Tokens& initial,
                 const std::vector<Tokens>& texts, bool conditions);

/// The text that is before all windows' as if it were that of a segment; empty for none.
std::vector<Tokens> first_texts(const RecognitionSettings& settings);

/// How many tokens a window may have after its prefix. Throws c10::ValueError if there are none.
int64_t most_tokens(const RecognitionSettings& settings, const Prefix& prefix);

}  // namespace posenc::speech
