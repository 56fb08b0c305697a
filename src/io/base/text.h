#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::io {

/// Whether `text` is UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text);

/// At most `most` bytes of `text`, followed by dots if it was longer. The result is always UTF-8:
/// if the text is not, each byte outside ASCII becomes a question mark.
std::string shortened(std::string_view text, std::size_t most);

/// `text` from a file, made safe for a terminal: control characters become '?'.
std::string printable(std::string_view text);

/// The same for a message: quoted and shortened.
std::string in_quotes(std::string_view text);

/// 'a', 'b' and 'c'.
std::string in_quotes_each(const std::vector<std::string>& texts);

}  // namespace posenc::io
