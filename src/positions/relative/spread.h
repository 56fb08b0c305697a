#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/positions/relative/index.h"

namespace posenc::relative {

/// relative_index() of the distances first, first + 1 ... (count), int64. T5's buckets are computed
/// once for each options, and then looked up.
at::Tensor rows_of_distances(int64_t first, int64_t count, const Index& index);

/// Whether spread_bias() takes the table: plain memory of a processor, as LibTorch dispatches it.
bool can_spread(const at::Tensor& table);

/// The bias of a table (rows, H) whose index depends on the distance only: entry (h, i, j) is
/// table(rows_of(j - i + queries - 1), h). `rows_of` has queries + keys - 1 rows of the table.
///
/// One pass over the result, and one over its gradient. Returns (1, H, queries, keys).
at::Tensor spread_bias(const at::Tensor& table, const at::Tensor& rows_of, int64_t queries,
                       int64_t keys);

/// The same by LibTorch's operations.
at::Tensor composed_bias(const at::Tensor& table, const at::Tensor& rows_of, int64_t queries,
                         int64_t keys);

}  // namespace posenc::relative
