#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/positions/sinusoid/options.h"

namespace posenc {

/// The table of `sinusoid` as a module holds it, with the dtype and device of `options`. Reference
/// recipes round to float32 before anything else; a Precision::Exact table is rounded once.
at::Tensor module_table(const SinusoidOptions& sinusoid, int64_t length,
                        const at::TensorOptions& options);

/// The same in the default dtype, like the other tensors of a new module.
at::Tensor module_table(const SinusoidOptions& sinusoid, int64_t length);

/// `table` (1, rows, dim), whose rows are kept since they may come from a checkpoint, with at least
/// `rows` of them, or twice as many as before if that is more; at most kPositionLimit.
at::Tensor grown_table(const at::Tensor& table, const SinusoidOptions& sinusoid, int64_t rows);

/// The rows of `positions`, (..., dim) on the CPU, rounded as in module_table().
at::Tensor module_rows(const SinusoidOptions& sinusoid, const at::Tensor& positions,
                       at::ScalarType dtype);

}  // namespace posenc
