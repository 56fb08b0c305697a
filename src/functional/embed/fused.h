#pragma once

#include <ATen/core/Tensor.h>

#include "functional/embed/fusable.h"

namespace posenc::functional {

/// embed() in one pass on the CPU, its backward included, by the plan that is_fusable() made of the
/// same arguments. A defined `out` is contiguous, of the right shape and type, apart from what is
/// read, and is returned.
at::Tensor embed_fused(EmbedPlan& plan, const at::Tensor& ids, const at::Tensor& weight,
                       const at::Tensor& table, const EmbedFuncOptions& options,
                       const at::Tensor& out = {});

}  // namespace posenc::functional
