#include "cli/text_lines.h"

namespace posenc::cli {

std::pair<std::string_view, std::string_view> split_pair(const LineReader& reader,
                                                         std::string_view line) {
  const std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos) {
    fail("{}: line {} must have two texts, separated by one tab", reader.name(), reader.number());
  }
  return {line.substr(0, tab), line.substr(tab + 1)};
}

}  // namespace posenc::cli
