#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/export.h"
#include "posenc/positions/relative/index.h"
#include "posenc/positions/relative/window.h"

namespace posenc POSENC_EXPORT {

/// Returns the relative position bias of a table, which is added to the scores:
/// ```cpp
/// auto table = torch::randn({32, 12});  // 32 buckets, 12 heads
/// auto bias = posenc::relative_position_bias(table, 128, 128, posenc::relative::Buckets{});
/// auto mask = posenc::AttentionMask::additive(bias);
/// ```
/// table: (rows, H)  ->  (1, H, queries, keys), with a gradient for the table. An index depends on
/// the distance only, so each head's row of queries + keys - 1 entries is computed once, and the
/// matrix is a copy of its parts.
///
/// `offset` is the position of the first query: the number of keys before it.
///
/// Errors: those of relative_index(); c10::ValueError for a table of another rank or with another
/// number of rows, an index beyond its rows, negative sizes, and positions above 2^32.
at::Tensor relative_position_bias(const at::Tensor& table, int64_t queries, int64_t keys,
                                  const relative::Index& index, int64_t offset = 0);

/// The same for tokens at any positions, such as those of boxes.
///
/// table: (rows, H), queries: (B, Q), keys: (B, K), int64  ->  (B, H, Q, K)
///
/// Errors: those of relative_index(), and of relative_bias_of_indices().
at::Tensor relative_position_bias(const at::Tensor& table, const at::Tensor& queries,
                                  const at::Tensor& keys, const relative::Index& index);

/// The entries of a table for indices that are already known, such as those of a window.
///
/// table: (rows, H), indices: (..., Q, K), int64  ->  (..., H, Q, K), contiguous; for (Q, K) it is
/// (1, H, Q, K).
///
/// Errors: c10::TypeError for indices that are not int64; c10::ValueError for a table or indices of
/// another rank, and an index that is no row of the table.
at::Tensor relative_bias_of_indices(const at::Tensor& table, const at::Tensor& indices);

/// The bias of a class token and the patches of the grid `to`, from the table of the grid `from`,
/// which is resized by relative::Resize::BilinearTransposed.
///
/// table: ((2 height - 1) (2 width - 1) + 3, H) of `from`  ->  (1, H, 1 + N, 1 + N), where N is the
/// number of patches of `to`
///
/// Errors: those of resize_relative_table().
///
/// Source: `BeitRelativePositionBias` of transformers 5.23.
at::Tensor relative_grid_bias(const at::Tensor& table, relative::Grid from, relative::Grid to);

}  // namespace posenc
