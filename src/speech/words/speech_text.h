#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/speech/transcript.h"
#include "posenc/tokenizers/tensors.h"

// Whisper's tokens as text.
namespace posenc::speech {

/// The text of new tokens, without special ones and timestamps, as WhisperTokenizer.decode() makes
/// it. Broken UTF-8 is U+FFFD.
std::string text_of(const Tokenizer& tokenizer, const std::vector<int64_t>& tokens);

/// The words of a segment, whose tokens have the times `times`, from the tokens below
/// `first_timestamp`. `before`: the time of the token before the segment, 0 for the first.
/// `language`: its code, or empty.
std::vector<TranscriptWord> words_of(const Tokenizer& tokenizer, const std::vector<int64_t>& tokens,
                                     const std::vector<float>& times, float before,
                                     int64_t first_timestamp, const std::string& language);

/// The tokens of a prompt, as WhisperProcessor.get_prompt_ids() makes them: <|startofprev|> and the
/// text. Throws c10::ValueError for a special token in it, which errors call `label`.
std::vector<int64_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt);

}  // namespace posenc::speech
