#pragma once

#include <ATen/core/Tensor.h>

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

/// The sizes to which `source` changes a tensor of these sizes; nullopt if it cannot be applied.
std::optional<std::vector<int64_t>> changed_sizes(const KeySource& source, at::IntArrayRef sizes);

/// Why changed_sizes() is nullopt: "must have axes 0 and 1 to be transposed".
std::string change_rule(const KeySource& source);

/// `changed`, which has the sizes after the change, viewed so that copying the file's tensor into
/// the view applies the change. Not for a change that reorders_rows(): no view of the file's axes
/// does.
at::Tensor as_in_file(const KeySource& source, const at::Tensor& changed);

/// Whether the change needs new memory: it moves rows, or adds zeros.
bool reorders_rows(const KeySource& source);

/// The file's tensor after a change that reorders_rows(), in new memory.
at::Tensor reordered(const KeySource& source, const at::Tensor& in_file);

}  // namespace posenc::io
