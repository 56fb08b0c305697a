#pragma once

#include <ATen/core/Tensor.h>

#include "functional/embed/fusable.h"

namespace posenc::functional {

/// Makes `out` the recorded result of plan.gather on `weight`. `ids`: those that it reads; `mask`:
/// dropout's bits, or undefined.
void record(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
            const EmbedPlan& plan, const at::Tensor& mask, bool sparse);

}  // namespace posenc::functional
