#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

/// Where the characters of a text begin, in bytes.
class CharacterBytes {
 public:
  explicit CharacterBytes(std::string_view text) : text_(text) {
    const bool is_ascii = std::all_of(text.begin(), text.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (is_ascii) return;
    for (std::size_t at = 0; at < text.size();) {
      begins_.push_back(static_cast<int64_t>(at));
      at += utf8_length(static_cast<unsigned char>(text[at]));
    }
  }

  /// The first byte of a character; the end of the text for one past it.
  int64_t operator()(int64_t character) const {
    if (character < count()) return begins_.empty() ? character : begins_[at(character)];
    return static_cast<int64_t>(text_.size());
  }
  /// Characters [begin, end) of the text, as far as there are any.
  std::string_view slice(int64_t begin, int64_t end) const {
    const auto first = static_cast<std::size_t>((*this)(begin));
    const auto past = static_cast<std::size_t>((*this)(end));
    return text_.substr(first, past > first ? past - first : 0);
  }
  /// Number of characters.
  int64_t count() const {
    return static_cast<int64_t>(begins_.empty() ? text_.size() : begins_.size());
  }

 private:
  static std::size_t at(int64_t character) { return static_cast<std::size_t>(character); }

  std::string_view text_;
  std::vector<int64_t> begins_;  // empty for ASCII
};

}  // namespace posenc::text
