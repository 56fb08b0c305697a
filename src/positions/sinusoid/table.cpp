#include "posenc/positions/sinusoid/table.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include "core/check.h"
#include "positions/sinusoid/columns.h"
#include "positions/sinusoid/exact.h"
#include "positions/sinusoid/rows.h"

namespace posenc {
namespace {

at::TensorOptions complete(const at::TensorOptions& options) {
  return at::TensorOptions(options.has_dtype() ? c10::typeMetaToScalarType(options.dtype())
                                               : at::kFloat)
      .device(options.device());
}

at::Tensor in_arithmetic(const SinusoidOptions& o, const at::Tensor& positions) {
  return positions.to(o.arithmetic() == sinusoid::Arithmetic::Float32 ? at::kFloat : at::kDouble);
}

// As the exact kernels take them: integers as int64, everything else as float64.
at::Tensor exact_positions(const at::Tensor& positions) {
  const bool integral = at::isIntegralType(positions.scalar_type(), /*includeBool=*/false);
  return positions.to(integral ? at::kLong : at::kDouble);
}

// The rows of a table, without zero rows and Post.
at::Tensor plain_rows(const SinusoidOptions& o, int64_t length, at::ScalarType dtype) {
  const bool exact = o.precision() == Precision::Exact;
  if (!o.grid().empty()) return exact ? exact_grid(o, dtype) : reference_grid(o);
  if (!exact) return reference_rows(o, in_arithmetic(o, row_positions(o, length)), length);
  if (const auto rows = row_sequence(o, length)) return exact_rows(o, *rows, dtype);
  return exact_rows(o, exact_positions(row_positions(o, length)), dtype);
}

// The systems round a float64 table to float32 first, and only then to a half type; float64 itself
// is kept only on request.
at::Tensor rounded(const SinusoidOptions& o, const at::Tensor& rows, const at::TensorOptions& to) {
  const bool keep = o.precision() == Precision::Exact ||
                    (o.post() == sinusoid::Post::None && complete(to).dtype() == at::kDouble);
  return keep ? rows : rows.to(at::kFloat);
}

}  // namespace

at::Tensor sinusoid_table(const SinusoidOptions& options, int64_t length,
                          const at::TensorOptions& tensor_options) {
  options.validate();
  TORCH_CHECK_VALUE(length > 0 && length <= kPositionLimit,
                    "[sinusoid_table] length must lie in [1, 2^31]. Got ", length);
  at::NoGradGuard no_grad;
  TORCH_CHECK_VALUE(options.grid().empty() || length == cells(options),
                    "[sinusoid_table] length must be the number of cells ", cells(options),
                    " of the grid ", at::IntArrayRef(options.grid()), ". Got ", length);
  const auto requested = complete(tensor_options);
  at::Tensor rows = plain_rows(options, length, c10::typeMetaToScalarType(requested.dtype()));
  rows = rounded(options, rows, tensor_options);
  if (options.zero_row() && *options.zero_row() >= 0 && *options.zero_row() < rows.size(0)) {
    rows.select(0, *options.zero_row()).zero_();
  }
  if (options.cls_row()) rows = at::cat({at::zeros({1, rows.size(1)}, rows.options()), rows});
  if (options.row_count(length) > rows.size(0)) {  // sinusoid::OddDim::ExtraRow
    rows = at::cat({rows, at::zeros({1, rows.size(1)}, rows.options())});
  }
  finish(options, rows);
  return rows.to(complete(tensor_options));
}

at::Tensor sinusoid_rows(const SinusoidOptions& options, const at::Tensor& positions,
                         const at::TensorOptions& tensor_options) {
  options.validate();
  TORCH_CHECK_TYPE(positions.scalar_type() != at::kBool && !positions.is_complex(),
                   "[sinusoid_rows] positions must be integers or reals. Got ",
                   positions.scalar_type());
  TORCH_CHECK_VALUE(
      options.grid().empty() && !options.angle_by_length() &&
          options.post() != sinusoid::Post::Standardize,
      "[sinusoid_rows] rows of single positions exist only where a row does not depend on "
      "the table: no grid, no angle_by_length, no sinusoid::Post::Standardize");
  TORCH_CHECK_VALUE(!(at::GradMode::is_enabled() && positions.requires_grad()),
                    "[sinusoid_rows] the rows have no gradient of their positions: pass "
                    "positions.detach(). Got positions that require a gradient");
  at::NoGradGuard no_grad;
  const at::Tensor flat = positions.to(at::kCPU).reshape({-1});
  TORCH_CHECK_VALUE(at::isfinite(flat).all().item<bool>(),
                    "[sinusoid_rows] positions must be finite. Got NaN or infinity");
  at::Tensor rows = options.precision() == Precision::Exact
                        ? exact_rows(options, exact_positions(flat),
                                     c10::typeMetaToScalarType(complete(tensor_options).dtype()))
                        : reference_rows(options, in_arithmetic(options, flat), 1);
  rows = rounded(options, rows, tensor_options);
  if (options.zero_row()) {
    const double zero = options.start() + options.step() * static_cast<double>(*options.zero_row());
    rows.masked_fill_((flat == zero).unsqueeze(1), 0.0);
  }
  finish(options, rows);
  auto shape = positions.sizes().vec();
  shape.push_back(rows.size(1));
  return rows.to(complete(tensor_options)).view(shape);
}

at::Tensor convert_table(const SinusoidOptions& options, const at::Tensor& table,
                         at::ScalarType dtype) {
  if (dtype == table.scalar_type() || !at::isFloatingType(dtype) || table.numel() == 0) {
    return table.to(dtype);
  }
  const int64_t length = nominal_length(options, table.size(-2));
  if (length == 0 || options.channels() != table.size(-1)) return table.to(dtype);
  const auto exact = options.precision() == Precision::Exact;
  const auto rows = sinusoid_table(options, length, exact ? table.options() : at::TensorOptions());
  if (!at::equal(rows.to(table.options()).expand_as(table), table)) return table.to(dtype);
  const auto requested = table.options().dtype(dtype);
  return (exact ? sinusoid_table(options, length, requested) : rows.to(requested))
      .view(table.sizes());
}

}  // namespace posenc
