#pragma once

#include <ATen/core/Tensor.h>

#include "functional/rotary/fusable.h"

namespace posenc::functional {

/// Makes those of the results `out` whose input autograd records the recorded results of rotating q
/// and k by `plan`.
void record(const RotaryPlan& plan, const QueryKey& out, const at::Tensor& q, const at::Tensor& k,
            const RotaryOptions& options, const RotaryFuncOptions& how);

}  // namespace posenc::functional
