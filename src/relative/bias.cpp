#include "posenc/relative/bias.h"

#include <ATen/ops/arange.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include "posenc/relative/resize.h"

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

}  // namespace

at::Tensor relative_position_bias(const at::Tensor& table, int64_t queries, int64_t keys,
                                  const relative::Index& index, int64_t offset) {
  check_bias_table(table, index);
  TORCH_CHECK_VALUE(queries >= 0 && keys >= 0,
                    "[RelativePositionBias] the numbers of queries and keys must not be negative. "
                    "Got ",
                    queries, " and ", keys);
  // An index depends on the distance only, so that the entries of each query are a part of one row;
  // that of the last query comes first.
  const int64_t first = offset + queries - 1;
  const int64_t entries = queries > 0 && keys > 0 ? queries + keys - 1 : 0;
  const auto places = table.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor row =
      table.t().index_select(1, relative_index(at::arange(-first, entries - first, places), index));
  if (entries == 0) return row.reshape({1, table.size(1), queries, keys});
  const at::Tensor parts = row.unfold(1, keys, 1);  // (H, R) -> (H, Q, K), a view
  // index_select and not flip, whose result has the order of the view's strides.
  return parts.index_select(1, at::arange(queries - 1, -1, -1, places)).unsqueeze(0);
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
  const int64_t heads = table.size(1), queries = indices.size(-2), keys = indices.size(-1);
  const int64_t batch = c10::multiply_integers(indices.sizes().slice(0, indices.dim() - 2));
  const at::Tensor entries = table.t().index_select(1, indices.reshape(-1));  // (H, B Q K)
  return entries.view({heads, batch, queries, keys}).transpose(0, 1).contiguous();
}

at::Tensor relative_grid_bias(const at::Tensor& table, relative::Grid from, relative::Grid to) {
  constexpr int64_t kOfClassToken = 3;  // rows of the table
  const at::Tensor own =
      resize_relative_table(table, from, to, relative::Resize::BilinearTransposed, kOfClassToken);
  const at::Tensor index = relative_window_index(to, /*class_token=*/true).to(table.device());
  return relative_bias_of_indices(own, index);
}

}  // namespace posenc
