#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/positions/relative/index.h"

namespace posenc::relative {

/// relative_index() of the distances first, first + 1 ... (count), int64. T5's buckets are computed
/// once for each options, and then looked up.
at::Tensor rows_of_distances(int64_t first, int64_t count, const Index& index);

}  // namespace posenc::relative
