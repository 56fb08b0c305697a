#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::detail {

/// Returns up to `most` names with the smallest edit distance from `given`, nearest first, for the
/// "did you mean" of an error message. Names more than `farthest` edits away are left out.
std::vector<std::string> nearest(std::string_view given, const std::vector<std::string>& names,
                                 size_t most = 3, size_t farthest = SIZE_MAX);

/// The same, with commas between them.
std::string nearest_text(std::string_view given, const std::vector<std::string>& names);

}  // namespace posenc::detail
