#include "posenc/positions/functional/extend_positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_linear1d.h>
#include <c10/util/Exception.h>

namespace posenc::functional {
namespace {

constexpr double kHierarchicalShare = 0.4;

void check_extension(const at::Tensor& table, int64_t rows, int64_t prefix) {
  TORCH_CHECK_TYPE(table.defined() && table.is_floating_point(),
                   "[extend_positions] table must be floating-point. Got ",
                   table.defined() ? c10::toString(table.scalar_type()) : "an undefined tensor");
  TORCH_CHECK_VALUE(table.dim() == 2, "[extend_positions] table must be (rows, D). Got ",
                    table.sizes());
  TORCH_CHECK_VALUE(prefix >= 0 && prefix < table.size(0),
                    "[extend_positions] prefix must lie in [0, ", table.size(0), "). Got ", prefix);
  TORCH_CHECK_VALUE(rows >= table.size(0), "[extend_positions] rows must be at least ",
                    table.size(0), ", those of the table. Got ", rows);
}

at::Tensor interpolated(const at::Tensor& positions, int64_t count, bool align_corners) {
  return at::upsample_linear1d(positions.t().unsqueeze(0), {count}, align_corners).squeeze(0).t();
}

at::Tensor hierarchical(const at::Tensor& positions, const at::Tensor& indices) {
  const int64_t rows = positions.size(0);
  const at::Tensor own =
      (positions - kHierarchicalShare * positions.narrow(0, 0, 1)) / (1.0 - kHierarchicalShare);
  const at::Tensor outer = indices.div(rows, "floor"), inner = indices.remainder(rows);
  return kHierarchicalShare * own.index_select(0, outer) +
         (1.0 - kHierarchicalShare) * own.index_select(0, inner);
}

}  // namespace

at::Tensor extend_positions(const at::Tensor& table, int64_t rows, PositionExtension rule,
                            int64_t prefix) {
  check_extension(table, rows, prefix);
  const int64_t old = table.size(0) - prefix, count = rows - prefix;
  TORCH_CHECK_VALUE(rule != PositionExtension::Hierarchical || count <= old * old,
                    "[extend_positions] rows must be at most ", prefix + old * old,
                    " with PositionExtension::Hierarchical. Got ", rows);
  if (count == old) return table.clone();
  const at::Tensor positions = table.narrow(0, prefix, old);
  const at::Tensor indices = at::arange(count, table.options().dtype(at::kLong));
  at::Tensor longer;
  switch (rule) {
    case PositionExtension::Repeat:
      longer = positions.index_select(0, indices.remainder(old));
      break;
    case PositionExtension::Linear: longer = interpolated(positions, count, false); break;
    case PositionExtension::LinearAlignCorners:
      longer = interpolated(positions, count, true);
      break;
    case PositionExtension::Hierarchical: longer = hierarchical(positions, indices); break;
  }
  return at::cat({table.narrow(0, 0, prefix), longer});
}

}  // namespace posenc::functional
