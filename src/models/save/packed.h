#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/weights/state_dict.h"

namespace posenc {

/// Adds a tensor under its name in the file, or the rows of a packed one under theirs: queries,
/// keys and values, of which the first have `query_rows` and the last two the same number, or parts
/// of one height, such as the halves of gates, or the norms of heads, with 0.
void add_packed(StateDict& tensors, const std::vector<std::string>& names, const at::Tensor& tensor,
                int64_t query_rows);

}  // namespace posenc
