#pragma once

#include <string>
#include <vector>

namespace posenc::cli {

/// Formats rows of text as aligned columns, indented by `indent`. A column is right-aligned if all
/// its texts, except in the first row, begin like a number.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t indent = 0);

}  // namespace posenc::cli
