#pragma once

#include <string>
#include <vector>

namespace posenc::cli {

/// Rows of texts as aligned columns, `indent` blanks in front. Columns whose texts below the first
/// row all begin like a number are flush right.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t indent = 0);

}  // namespace posenc::cli
