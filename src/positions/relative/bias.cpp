#include "posenc/positions/relative/bias.h"

#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstdlib>

#include "core/tensors.h"
#include "posenc/positions/relative/resize.h"
#include "positions/relative/limits.h"
#include "positions/relative/spread.h"

namespace posenc {
namespace {

void check_bias_table(const at::Tensor& table, const relative::Index& index) {
  TORCH_CHECK_VALUE(table.dim() == 2,
                    "[RelativePositionBias] weight must be (num_buckets, num_heads). Got ",
                    table.sizes());
  const int64_t rows = relative_rows(index);
  TORCH_CHECK_VALUE(rows == 0 || table.size(0) == rows, "[RelativePositionBias] weight must have ",
                    rows, " rows, one for each index. Got ", table.sizes());
}

[[noreturn]] void refuse_rows(const at::Tensor& indices, int64_t rows) {
  TORCH_CHECK_VALUE(false, "[RelativePositionBias] indices must be rows of the table, 0 to ",
                    rows - 1, ". Got ", indices.min().item<int64_t>(), " to ",
                    indices.max().item<int64_t>());
  std::abort();  // the check throws
}

void check_rows(const at::Tensor& indices, int64_t rows) {
  const int64_t* index = indices.const_data_ptr<int64_t>();
  const bool fit =
      std::all_of(index, index + indices.numel(), [&](int64_t i) { return i >= 0 && i < rows; });
  if (!fit) refuse_rows(indices, rows);
}

// The rows of a table (rows, H) as (H, N), for indices (N). LibTorch looks whether they fit.
at::Tensor entries_of(const at::Tensor& table, const at::Tensor& indices) {
  try {
    return table.t().index_select(1, indices);
  } catch (const c10::Error&) {
    check_rows(indices.cpu().contiguous(), table.size(0));
    throw;
  }
}

}  // namespace

at::Tensor relative_position_bias(const at::Tensor& table, int64_t queries, int64_t keys,
                                  const relative::Index& index, int64_t offset) {
  check_bias_table(table, index);
  TORCH_CHECK_VALUE(queries >= 0 && keys >= 0,
                    "[RelativePositionBias] the numbers of queries and keys must not be negative. "
                    "Got ",
                    queries, " and ", keys);
  TORCH_CHECK_VALUE(offset >= 0 && std::max({offset, queries, keys}) <= relative::kMostPositions,
                    "[RelativePositionBias] offset must not be negative, and positions must be at "
                    "most ",
                    relative::kMostPositions, ". Got offset ", offset, ", ", queries,
                    " queries and ", keys, " keys");
  if (queries == 0 || keys == 0) return table.new_empty({1, table.size(1), queries, keys});
  // An index depends on the distance only, so that the entries of each query are a part of one row;
  // that of the last query comes first.
  const int64_t first = offset + queries - 1;
  const at::Tensor rows = relative::rows_of_distances(-first, queries + keys - 1, index);
  check_rows(rows, table.size(0));
  if (relative::can_spread(table)) return relative::spread_bias(table, rows, queries, keys);
  return relative::composed_bias(table, sent_to(rows, table.device()), queries, keys);
}

at::Tensor relative_position_bias(const at::Tensor& table, const at::Tensor& queries,
                                  const at::Tensor& keys, const relative::Index& index) {
  check_bias_table(table, index);
  return relative_bias_of_indices(table, relative_index(queries, keys, index));
}

at::Tensor relative_bias_of_indices(const at::Tensor& table, const at::Tensor& indices) {
  TORCH_CHECK_VALUE(table.dim() == 2, "[RelativePositionBias] weight must be (rows, H). Got ",
                    table.sizes());
  TORCH_CHECK_VALUE(indices.dim() >= 2, "[RelativePositionBias] indices must be (..., Q, K). Got ",
                    indices.sizes());
  TORCH_CHECK_TYPE(indices.scalar_type() == at::kLong,
                   "[RelativePositionBias] indices must be int64. Got ", indices.scalar_type());
  const int64_t heads = table.size(1), queries = indices.size(-2), keys = indices.size(-1);
  const int64_t batch = c10::multiply_integers(indices.sizes().slice(0, indices.dim() - 2));
  const at::Tensor entries = entries_of(table, indices.reshape(-1));  // (H, B Q K)
  return entries.view({heads, batch, queries, keys}).transpose(0, 1).contiguous();
}

at::Tensor relative_grid_bias(const at::Tensor& table, relative::Grid from, relative::Grid to) {
  constexpr int64_t kOfClassToken = 3;  // rows of the table
  const at::Tensor own =
      resize_relative_table(table, from, to, relative::Resize::BilinearTransposed, kOfClassToken);
  const at::Tensor index = sent_to(relative_window_index(to, /*class_token=*/true), table.device());
  return relative_bias_of_indices(own, index);
}

}  // namespace posenc
