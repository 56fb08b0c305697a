#include "cli/error.h"

#include <c10/util/Exception.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>

#include "base/nearest.h"
#include "base/text.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kShownName = 120;

}  // namespace

std::string message_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  // LibTorch's allocator prefixes its source location: `[enforce fail at alloc_cpu.cpp:127] `.
  if (text.find("can't allocate memory") != std::string::npos) {
    text = "out of memory: " + text.substr(text.rfind("you tried to"));
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string listed(std::vector<std::string> names, std::size_t most) {
  if (const std::size_t count = names.size(); count > most) {
    names.resize(most);
    names.push_back(fmt::format("and {} more", count - most));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string for_terminal(const std::string& text) {
  std::string result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (begin > 0) result += '\n';
    result += io::printable(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

std::string shown(const std::string& name) {
  return io::printable(io::shortened(name, kShownName));
}

std::string did_you_mean(const std::string& requested, const std::vector<std::string>& known) {
  // Allow a third of the letters to be wrong; beyond that, the hint would be a guess.
  const auto near = detail::nearest(requested, known, 1, requested.size() / 3 + 1);
  return near.empty() ? "" : "; did you mean " + near.front() + "?";
}

std::string suggestion(const std::string& requested, const std::vector<std::string>& known) {
  const std::string hint = did_you_mean(requested, known);
  return hint + (hint.empty() ? "; known: " : " Known: ") + listed(known);
}

}  // namespace posenc::cli
