#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace posenc {

/// The parts of a pattern between its asterisks; one more than these.
std::vector<std::string_view> parts_between_stars(std::string_view pattern);

/// The text that each asterisk of a pattern matches in a name.
using PatternRuns = std::vector<std::string_view>;

/// Those of a name that a pattern matches: an asterisk matches any sequence of characters, as few
/// as possible.
std::optional<PatternRuns> match_pattern(std::string_view pattern, std::string_view name);

}  // namespace posenc
