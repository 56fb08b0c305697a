#pragma once

#include <string>

namespace posenc::text {

/// What transformers does with decoded text where `clean_up_tokenization_spaces` is set: takes the
/// blanks before punctuation and contractions out.
void clean_up_spaces(std::string& text);

/// Removes what Python's str.strip() removes at both ends.
void strip_as_python(std::string& text);

}  // namespace posenc::text
