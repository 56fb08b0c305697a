#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/match_pattern.h"
#include "posenc/weights/key_map.h"
#include "posenc/weights/load.h"

namespace posenc::io {

/// The rule of a map that takes a name.
struct KeyMatch {
  std::size_t rule;    ///< its index
  std::size_t source;  ///< which of its sources the name matches
  PatternRuns runs;    ///< parts of the name
};
/// The first rule that matches `name`, a name in the file without the prefix; nullopt if none does.
std::optional<KeyMatch> find_rule(std::string_view name, const KeyMap& map);

/// `pattern` with its asterisks replaced by the first of `runs`.
std::string fill_pattern(std::string_view pattern, const PatternRuns& runs);

/// The names in a file, prefix included, that the map turns into the module's `name`: several for a
/// pack. None where no rule does, or where a rule does not keep what it matched.
std::vector<std::string> names_in_file(std::string_view name, const LoadOptions& options);

/// Throws c10::ValueError for a map that cannot be applied.
void check_key_map(const KeyMap& map);

}  // namespace posenc::io
