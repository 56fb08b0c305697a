#pragma once

#include <string>

namespace posenc::text {

/// What transformers does with decoded text where `clean_up_tokenization_spaces` is set: takes the
/// blanks before punctuation and contractions out.
void clean_up_spaces(std::string& text);

/// Takes Whisper's time stamps, such as <|1.20|>, out.
void remove_time_stamps(std::string& text);

}  // namespace posenc::text
