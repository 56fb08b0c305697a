#include "io/load/table_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>

#include <algorithm>
#include <limits>

#include "core/epsilon.h"

namespace posenc::io {
namespace {

double largest(const at::Tensor& tensor) { return tensor.abs().max().item<double>(); }

}  // namespace

bool same_but_rows(const ComputedTable& table, at::IntArrayRef module, at::IntArrayRef file) {
  if (module.size() != file.size()) return false;
  for (std::size_t i = 0; i < file.size(); ++i) {
    if (static_cast<int64_t>(i) != table.row_axis && module[i] != file[i]) return false;
  }
  return true;
}

TableCheck check_table(const ComputedTable& table, const at::Tensor& tensor,
                       const MappedSource& source, std::size_t index) {
  const auto& entry = source.entries()[index];
  const auto axis = static_cast<std::size_t>(table.row_axis);
  TableCheck check;
  check.report = {table.name, tensor.size(table.row_axis), entry.sizes[axis], 0.0, true};
  const int64_t common = std::min(check.report.rows, check.report.file_rows);
  const at::Tensor recipe = table.compute();
  if (!recipe.defined() || recipe.numel() == 0 || common == 0) return check;

  const at::Tensor rows = source.head(index, table.row_axis, common);
  const at::Tensor expected = recipe.narrow(table.row_axis, 0, common).to(at::kDouble);
  check.report.max_abs = largest(rows.to(at::kDouble) - expected);
  double rounding = epsilon_of(tensor.scalar_type());
  for (const auto& part : entry.parts) {
    rounding = std::max(rounding, epsilon_of(source.entry_of(part).dtype));
  }
  const double bound = table.tolerance + rounding * largest(expected);
  check.report.as_computed = check.report.max_abs <= bound;  // false for NaN
  if (common == check.report.rows) {
    check.value = rows.to(tensor.scalar_type());
  } else {
    check.value = recipe.clone();
    check.value.narrow(table.row_axis, 0, common).copy_(rows);
  }
  return check;
}

}  // namespace posenc::io
