#pragma once

#include <string>
#include <string_view>

namespace posenc::io {

/// `text` from a file, made safe for a terminal: control characters become '?'.
std::string printable(std::string_view text);

/// The same for a message: quoted and shortened.
std::string in_quotes(std::string_view text);

}  // namespace posenc::io
