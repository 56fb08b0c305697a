#pragma once

#include <string>
#include <string_view>

namespace posenc::io {

/// `text` from a file, fit for a terminal: control characters, which could command it, become '?'.
std::string printable(std::string_view text);

/// The same for a message: in quotes and shortened.
std::string in_quotes(std::string_view text);

}  // namespace posenc::io
