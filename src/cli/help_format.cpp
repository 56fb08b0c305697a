#include "cli/help_format.h"

#include <sstream>
#include <vector>

namespace posenc::cli {
namespace {

constexpr std::size_t kGroupIndent = 2;  // by which CLI11 indents groups of options afterwards
constexpr std::size_t kRowIndent = 6;    // of what follows a row

// The words of a line in lines of at most `width`; a longer word has a line of its own.
std::vector<std::string> wrapped(const std::string& line, std::size_t width) {
  std::vector<std::string> lines = {""};
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    std::string& last = lines.back();
    if (last.empty()) {
      last = word;
    } else if (last.size() + 1 + word.size() <= width) {
      last += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

// A row of a table keeps its columns, and what does not fit follows on indented lines.
std::string wrapped_row(std::string line) {
  std::string result;
  while (line.size() > kHelpWidth) {
    const std::size_t cut = line.rfind(' ', kHelpWidth);
    if (cut == std::string::npos || cut <= kRowIndent) break;  // one long word
    const std::size_t end = line.find_last_not_of(' ', cut) + 1;
    result += line.substr(0, end) + "\n";
    line = std::string(kRowIndent, ' ') + line.substr(cut + 1);
  }
  return result + line + "\n";
}

// Without the line of blanks that CLI11 has for a group without a description.
std::string wrapped_text(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.find_first_not_of(' ') == std::string::npos) continue;
    if (line.size() <= kHelpWidth || line.front() == ' ') {
      result += wrapped_row(line);
      continue;
    }
    for (const auto& part : wrapped(line, kHelpWidth)) result += part + "\n";
  }
  return result;
}

}  // namespace

std::string HelpFormat::make_description(const CLI::App* app) const {
  return wrapped_text(Formatter::make_description(app));
}

std::string HelpFormat::make_footer(const CLI::App* app) const {
  return wrapped_text(Formatter::make_footer(app));
}

std::string HelpFormat::make_subcommand(const CLI::App* sub) const {
  return entry(sub->get_name(), sub->get_description());
}

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

std::string HelpFormat::entry(const std::string& left, const std::string& text) const {
  const std::string margin(get_column_width(), ' ');
  std::string result = "  " + left;
  if (result.size() + 1 > margin.size()) {
    result += "\n" + margin;
  } else {
    result.resize(margin.size(), ' ');
  }
  bool is_first = true;
  for (const auto& line : wrapped(text, kHelpWidth - kGroupIndent - margin.size())) {
    result += (is_first ? "" : "\n" + margin) + line;
    is_first = false;
  }
  return result + "\n";
}

}  // namespace posenc::cli
