#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posenc::io {

/// `text` from a file, made safe for a terminal: control characters become '?'.
std::string printable(std::string_view text);

/// The same for a message: quoted and shortened.
std::string in_quotes(std::string_view text);

/// 'a', 'b' and 'c'.
std::string in_quotes_each(const std::vector<std::string>& texts);

}  // namespace posenc::io
