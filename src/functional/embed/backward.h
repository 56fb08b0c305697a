#pragma once

#include <ATen/core/Tensor.h>

#include "functional/embed/fusable.h"

namespace posenc::functional {

/// Makes `out` the result of plan.gather on `weight` in the autograd graph. `ids` are the ids that
/// the plan reads; `mask` holds the dropout bits, or is undefined.
void record(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
            const EmbedPlan& plan, const at::Tensor& mask, bool sparse);

}  // namespace posenc::functional
