#pragma once

#include <ATen/core/Tensor.h>

#include "functional/rotary/fusable.h"

namespace posenc::functional {

/// Makes `out` the results of rotating q and k by `plan` in the autograd graph, as far as autograd
/// records their inputs.
void record(const RotaryPlan& plan, const QueryKey& out, const at::Tensor& q, const at::Tensor& k,
            const RotaryOptions& options, const RotaryFuncOptions& func_options);

}  // namespace posenc::functional
