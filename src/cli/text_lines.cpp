#include "cli/text_lines.h"

namespace posenc::cli {

std::vector<std::string> texts_in(const std::string& file) {
  std::vector<std::string> texts;
  each_line(file, [&](const LineReader&, const std::string& line) { texts.push_back(line); });
  return texts;
}

std::pair<std::string, std::string> split_pair(const LineReader& reader, std::string_view line) {
  const std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos) {
    fail("{}: line {} must have two texts, separated by one tab", reader.name(), reader.number());
  }
  return {std::string(line.substr(0, tab)), std::string(line.substr(tab + 1))};
}

}  // namespace posenc::cli
