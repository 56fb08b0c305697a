#include "cli/error.h"

#include <c10/util/Exception.h>
#include <fmt/ranges.h>

#include <new>

#include "posenc/core/nearest.h"

namespace posenc::cli {

std::string message_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  // LibTorch's own allocator puts its source file in front: `[enforce fail at alloc_cpu.cpp:127] `.
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

std::string suggestion(const std::string& wanted, const std::vector<std::string>& known) {
  const auto near = nearest(wanted, known, 1);
  const std::string hint = near.empty() ? "" : "; did you mean " + near.front() + "?";
  return hint + (hint.empty() ? "; known: " : " Known: ") + listed(known);
}

}  // namespace posenc::cli
