#include "cli/text_table.h"

#include <algorithm>
#include <cctype>

namespace posenc::cli {
namespace {

bool is_number(const std::string& text) {
  return text == "nan" || text == "-" ||
         (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) &&
          text.find(' ') == std::string::npos);
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t indent) {
  std::vector<std::size_t> width;
  std::vector<bool> right;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    width.resize(std::max(width.size(), rows[i].size()), 0);
    right.resize(width.size(), true);
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      width[k] = std::max(width[k], rows[i][k].size());
      if (i > 0 && !is_number(rows[i][k])) right[k] = false;
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    const auto blanks = [&](std::size_t k) { return std::string(width[k] - row[k].size(), ' '); };
    for (std::size_t k = 0; k < row.size(); ++k) {
      line += k > 0 ? "  " : "";
      line += right[k] ? blanks(k) + row[k] : row[k];
      if (k + 1 < row.size() && !right[k]) line += blanks(k);  // not after the last column
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace posenc::cli
