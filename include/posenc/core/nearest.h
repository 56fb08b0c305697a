#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posenc {

/// The `most` names that are nearest to `wanted` by edit distance, nearest first: the "did you
/// mean" of an error message.
std::vector<std::string> nearest(std::string_view wanted, const std::vector<std::string>& names,
                                 size_t most = 3);

}  // namespace posenc
