#pragma once

#include <ATen/core/Tensor.h>

#include "functional/embed/fusable.h"

namespace posenc::functional {

/// embed() in one pass on the CPU, including its backward. `plan` is the result of is_fusable() for
/// the same arguments. A defined `out` must be contiguous, have the right shape and dtype, and not
/// overlap the inputs; it is returned.
at::Tensor embed_fused(EmbedPlan& plan, const at::Tensor& ids, const at::Tensor& weight,
                       const at::Tensor& table, const EmbedFuncOptions& options,
                       const at::Tensor& out = {});

}  // namespace posenc::functional
