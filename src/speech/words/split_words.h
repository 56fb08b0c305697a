#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace posenc::speech {

/// A word, and the indices of the tokens that it consists of.
struct WordTokens {
  std::string text;
  std::vector<std::size_t> tokens;
};

/// `text` without the spaces around it, as Python's strip() finds them.
std::string stripped(const std::string& text);

/// Joins the tokens of a text into words. `decode` makes text of tokens, and ids from
/// `first_special` on are words of their own. Without spaces (`spaces` is false), as in Chinese,
/// the fewest tokens that are whole characters are a word.
///
/// Source: `_combine_tokens_into_words` (transformers 5.23.0).
std::vector<WordTokens> split_words(
    const std::vector<int64_t>& tokens,
    const std::function<std::string(const std::vector<int64_t>&)>& decode, int64_t first_special,
    bool spaces);

}  // namespace posenc::speech
