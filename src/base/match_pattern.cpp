#include "base/match_pattern.h"

namespace posenc {

std::vector<std::string_view> parts_between_stars(std::string_view pattern) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const auto star = pattern.find('*', begin);
    parts.push_back(pattern.substr(begin, star - begin));
    if (star == std::string_view::npos) return parts;
    begin = star + 1;
  }
}

// Every part but the last is taken at its first occurrence, which finds a match whenever there is
// one.
std::optional<PatternRuns> match_pattern(std::string_view pattern, std::string_view name) {
  const auto parts = parts_between_stars(pattern);
  if (parts.size() == 1)
    return name == pattern ? std::optional<PatternRuns>(PatternRuns()) : std::nullopt;
  if (!name.starts_with(parts.front()) ||
      name.size() < parts.front().size() + parts.back().size() || !name.ends_with(parts.back())) {
    return std::nullopt;
  }
  PatternRuns runs;
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

}  // namespace posenc
