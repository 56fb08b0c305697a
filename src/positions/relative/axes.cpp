#include "positions/relative/axes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/einsum.h>

#include <algorithm>

#include "core/tensors.h"

namespace posenc::relative {
namespace {

// The row of each query and key of one axis.
at::Tensor axis_index(int64_t queries, int64_t keys) {
  const double ratio = static_cast<double>(keys) / static_cast<double>(queries);
  const double query_step = std::max(ratio, 1.0);
  const double key_step = std::max(static_cast<double>(queries) / static_cast<double>(keys), 1.0);
  const at::Tensor query = at::arange(queries, at::kLong).unsqueeze(1) * query_step;
  const at::Tensor key = at::arange(keys, at::kLong).unsqueeze(0) * key_step;
  return ((query - key) + static_cast<double>(keys - 1) * key_step).to(at::kLong);
}

}  // namespace

at::Tensor axis_rows(const at::Tensor& table, int64_t queries, int64_t keys) {
  const at::Tensor index = sent_to(axis_index(queries, keys), table.device());
  return table.index_select(0, index.flatten()).view({queries, keys, table.size(1)});
}

AxisTerms axis_terms(const at::Tensor& q, const at::Tensor& down, const at::Tensor& across) {
  const at::Tensor of_grid = q.reshape({-1, down.size(0), across.size(0), q.size(-1)});
  return {at::einsum("bhwc,hkc->bhwk", {of_grid, down}).unsqueeze(-1),
          at::einsum("bhwc,wkc->bhwk", {of_grid, across}).unsqueeze(-2)};
}

}  // namespace posenc::relative
