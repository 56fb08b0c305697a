#pragma once

#include <string_view>

namespace posenc::cli {

/// Strip spaces from the left or right end of `text`: those of Python's str.strip().
std::string_view without_left_spaces(std::string_view text);
std::string_view without_right_spaces(std::string_view text);

}  // namespace posenc::cli
