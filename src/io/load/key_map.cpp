#include "io/load/key_map.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

#include "io/base/quote.h"

namespace posenc::io {
namespace {

using Runs = std::vector<std::string_view>;

std::vector<std::string_view> parts_between_stars(std::string_view pattern) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const auto star = pattern.find('*', begin);
    parts.push_back(pattern.substr(begin, star - begin));
    if (star == std::string_view::npos) return parts;
    begin = star + 1;
  }
}

// The text that each `*` matches. Every part but the last is taken at its first occurrence, which
// finds a match whenever there is one.
std::optional<Runs> match(std::string_view pattern, std::string_view name) {
  const auto parts = parts_between_stars(pattern);
  if (parts.size() == 1) return name == pattern ? std::optional<Runs>(Runs()) : std::nullopt;
  if (!name.starts_with(parts.front()) ||
      name.size() < parts.front().size() + parts.back().size() || !name.ends_with(parts.back())) {
    return std::nullopt;
  }
  Runs runs;
  std::size_t at = parts.front().size();
  const std::size_t end = name.size() - parts.back().size();
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    const auto found = name.substr(0, end).find(parts[i], at);
    if (found == std::string_view::npos) return std::nullopt;
    runs.push_back(name.substr(at, found - at));
    at = found + parts[i].size();
  }
  runs.push_back(name.substr(at, end - at));
  return runs;
}

std::string fill(std::string_view pattern, const Runs& runs) {
  const auto parts = parts_between_stars(pattern);
  std::string name(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    name += runs[i - 1];
    name += parts[i];
  }
  return name;
}

}  // namespace

void check_key_map(const KeyMap& map) {
  const auto stars = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '*');
  };
  for (const auto& [from, to] : map) {
    TORCH_CHECK_VALUE(stars(to) <= stars(from),
                      "[LoadOptions] a new name of key_map must have no more `*` than its pattern ",
                      in_quotes(from), ". Got ", in_quotes(to));
  }
}

std::optional<std::string> mapped_name(std::string_view name, const LoadOptions& options) {
  const auto own = name.substr(options.prefix().size());
  for (const auto& [from, to] : options.key_map()) {
    const auto runs = match(from, own);
    if (!runs) continue;
    if (to.empty()) return std::nullopt;
    return fill(to, *runs);
  }
  return std::string(own);
}

}  // namespace posenc::io
