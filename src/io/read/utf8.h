#pragma once

#include <string_view>

namespace posenc::io {

/// Whether `text` is UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace posenc::io
