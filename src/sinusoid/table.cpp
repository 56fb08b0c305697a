#include "posenc/sinusoid/table.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>

#include "sinusoid/reference.h"

namespace posenc {
namespace {

at::ScalarType dtype_of(const at::TensorOptions& options) {
  return options.has_dtype() ? c10::typeMetaToScalarType(options.dtype()) : at::kFloat;
}

// Checked options and positions (N) in the recipe's arithmetic type, on the CPU -> (N, dim).
at::Tensor rows_of(const SinusoidOptions& options, const at::Tensor& positions,
                   const at::TensorOptions& tensor_options) {
  at::NoGradGuard no_grad;
  at::Tensor rows = at::empty({positions.size(0), options.dim()}, positions.options());
  reference_rows(options, positions, rows);
  return rows.to(at::TensorOptions(dtype_of(tensor_options)).device(tensor_options.device()));
}

}  // namespace

at::Tensor sinusoid_table(const SinusoidOptions& options, int64_t length,
                          const at::TensorOptions& tensor_options) {
  check(options);
  TORCH_CHECK_VALUE(length > 0, "[sinusoid_table] length must be positive. Got ", length);
  return rows_of(options, at::arange(length, at::TensorOptions(options.arithmetic())),
                 tensor_options);
}

at::Tensor sinusoid(const SinusoidOptions& options, const at::Tensor& positions,
                    const at::TensorOptions& tensor_options) {
  check(options);
  TORCH_CHECK_TYPE(positions.scalar_type() != at::kBool && !positions.is_complex(),
                   "[sinusoid] positions must be integers or reals. Got ", positions.scalar_type());
  const at::Tensor flat =
      positions.detach().to(at::kCPU).to(options.arithmetic()).reshape({-1}).contiguous();
  TORCH_CHECK_VALUE(at::isfinite(flat).all().item<bool>(),
                    "[sinusoid] positions must be finite. Got NaN or infinity");
  auto shape = positions.sizes().vec();
  shape.push_back(options.dim());
  return rows_of(options, flat, tensor_options).view(shape);
}

at::Tensor convert_table(const SinusoidOptions& options, const at::Tensor& table,
                         at::ScalarType dtype) {
  if (dtype == table.scalar_type() || !at::isFloatingType(dtype) || table.numel() == 0) {
    return table.to(dtype);
  }
  const auto rows = sinusoid_table(options, table.size(-2));
  const auto present = rows.to(table.options()).expand_as(table);
  if (!at::equal(present, table)) return table.to(dtype);
  return rows.to(table.options().dtype(dtype)).view(table.sizes());
}

}  // namespace posenc
