#pragma once

#include <string>
#include <string_view>

namespace posenc::io {

/// `text` from a file, fit for a message: in quotes, shortened, control characters replaced.
std::string in_quotes(std::string_view text);

}  // namespace posenc::io
