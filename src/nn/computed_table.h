#pragma once

#include <string>

#include "posenc/core/weight_notes.h"
#include "posenc/sinusoid/options.h"

namespace posenc {

/// The note that `tensor`, the module's `name`, holds the table of `sinusoid` with the nominal
/// `length`, or has grown beyond it; (..., rows, dim) with the rows on `row_axis`.
ComputedTable computed_table(const std::string& name, int64_t row_axis, const at::Tensor& tensor,
                             const SinusoidOptions& sinusoid, int64_t length);

}  // namespace posenc
