#pragma once

#include <string>

#include "posenc/core/state_dict_traits.h"
#include "posenc/sinusoid/options.h"

namespace posenc {

/// The table of `sinusoid` as a module holds it in `options`' dtype and on its device: the systems
/// round to float32 before anything else, a table of Precision::Exact is rounded once.
at::Tensor module_table(const SinusoidOptions& sinusoid, int64_t length,
                        const at::TensorOptions& options);

/// The same in the default dtype, which a new module's tensors have, tables as well as weights.
at::Tensor module_table(const SinusoidOptions& sinusoid, int64_t length);

/// The rows of `positions`, rounded as those of module_table(): (..., dim), on the CPU.
at::Tensor module_rows(const SinusoidOptions& sinusoid, const at::Tensor& positions,
                       at::ScalarType dtype);

/// The note that `tensor`, the module's `name`, holds the table of `sinusoid` with the nominal
/// `length`, or has grown beyond it; (..., rows, dim) with the rows on `row_axis`.
ComputedTable computed_table(const std::string& name, int64_t row_axis, const at::Tensor& tensor,
                             const SinusoidOptions& sinusoid, int64_t length);

}  // namespace posenc
