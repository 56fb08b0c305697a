#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/sinusoid/options.h"

namespace posenc {

/// The rows of positions 0 .. length-1: (length, dim).
///
/// Computed on the CPU in the recipe's own order of operations, rounded to `tensor_options`' dtype
/// (float32 by default) once, then moved to its device. The bits are those of the same PyTorch
/// operations on this machine with one thread, at any number of threads.
/// Throws c10::ValueError for length < 1 and for options that no table can have.
at::Tensor sinusoid_table(const SinusoidOptions& options, int64_t length,
                          const at::TensorOptions& tensor_options = {});

/// The rows of `positions` (any shape, integer or real, in positions): (..., dim).
///
/// With PowerShape::Grid the flattened positions are the grid. Throws c10::ValueError for
/// positions that are not finite and c10::TypeError for boolean or complex ones.
at::Tensor sinusoid(const SinusoidOptions& options, const at::Tensor& positions,
                    const at::TensorOptions& tensor_options = {});

/// `table` (..., rows, dim) in another floating-point type without a rounding too many: where it
/// holds exactly what the recipe gives in its present type, the recipe is evaluated anew for
/// `dtype`; a table that differs (one that was trained, or made by another CPU) is cast.
at::Tensor convert_table(const SinusoidOptions& options, const at::Tensor& table,
                         at::ScalarType dtype);

}  // namespace posenc
