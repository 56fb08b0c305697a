#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace posenc::io {

/// Whether `text` is UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text);

/// At most `most` bytes of `text`, with dots where it was longer, and always UTF-8: in other texts
/// a question mark stands for each byte that is not ASCII.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace posenc::io
