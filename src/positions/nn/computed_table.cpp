#include "positions/nn/computed_table.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <cmath>

#include "core/position_limit.h"
#include "core/tensors.h"
#include "core/torch_internals/without_memory.h"
#include "posenc/positions/nn/table_module.h"
#include "posenc/positions/sinusoid/table.h"

namespace posenc {
namespace {

// Tolerance for a table in a checkpoint. Machines and libraries round a frequency to one of two
// neighbouring floats; the angle of a row is then off by that difference times its position, and
// sine and cosine by no more than the angle. That is 1.2e-3 at position 5000, where another formula
// (n-1, positions from one) is off by 0.1 and more.
double tolerance_of(const SinusoidOptions& sinusoid, int64_t length) {
  const double last =
      std::abs(sinusoid.start()) + std::abs(sinusoid.step()) * static_cast<double>(length);
  return 0x1p-22 * std::max(1.0, last) * std::max(1.0, std::abs(sinusoid.angle_scale()));
}

at::Tensor compute(const SinusoidOptions& sinusoid, int64_t length, const at::Tensor& like) {
  const auto rows = module_table(sinusoid, length, like.options().device(at::kCPU));
  return rows.numel() == like.numel() ? rows.view(like.sizes()) : at::Tensor();
}

}  // namespace

at::Tensor module_table(const SinusoidOptions& sinusoid, int64_t length,
                        const at::TensorOptions& options) {
  if (torch_internals::WithoutMemory::is_active())
    return at::empty({sinusoid.row_count(length), sinusoid.channels()}, options);
  const auto here = options.requires_grad(false).device(at::kCPU);
  const bool exact = sinusoid.precision() == Precision::Exact;
  const at::Tensor table = sinusoid_table(sinusoid, length, exact ? here : at::TensorOptions());
  return sent_to(table.to(here), options.device());
}

at::Tensor grown_table(const at::Tensor& table, const SinusoidOptions& sinusoid, int64_t rows) {
  const int64_t present = table.size(1);
  const int64_t length = std::min(std::max(rows, 2 * present), kPositionLimit);
  const auto more = module_table(sinusoid, length, table.options()).slice(0, present).unsqueeze(0);
  return at::cat({table, more}, 1);
}

at::Tensor module_table(const SinusoidOptions& sinusoid, int64_t length) {
  return module_table(sinusoid, length, at::TensorOptions(c10::get_default_dtype_as_scalartype()));
}

at::Tensor module_rows(const SinusoidOptions& sinusoid, const at::Tensor& positions,
                       at::ScalarType dtype) {
  const at::TensorOptions requested(dtype);
  const bool exact = sinusoid.precision() == Precision::Exact;
  return sinusoid_rows(sinusoid, positions, exact ? requested : at::TensorOptions()).to(requested);
}

std::vector<ComputedTable> TableTraits::computed_tables() const {
  const TableRecipe own = table_recipe();
  if (!own.table.defined()) return {};
  const int64_t rows = own.table.size(own.row_axis);
  const bool as_made = own.sinusoid.row_count(own.length) == rows;  // and has not grown
  const int64_t length = as_made ? own.length : rows;
  return {{own.name, own.row_axis, [=] { return compute(own.sinusoid, length, own.table); },
           tolerance_of(own.sinusoid, length)}};
}

void TableTraits::convert(torch::Dtype dtype) {
  const TableRecipe own = table_recipe();
  if (own.table.defined()) own.table.set_data(convert_table(own.sinusoid, own.table, dtype));
}

}  // namespace posenc
