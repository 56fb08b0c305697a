#pragma once

#include <ATen/core/Tensor.h>

#include "functional/embedding_front/fusable.h"

namespace posenc::functional {

/// embedding_front() in one pass on the CPU, including its backward, with ATen's projection after
/// it. `plan` is the result of is_fusable() for the same arguments.
at::Tensor embedding_front_fused(EmbeddingFrontPlan& plan, const at::Tensor& ids,
                                 const EmbeddingFrontWeights& weights,
                                 const EmbeddingFrontFuncOptions& options);

}  // namespace posenc::functional
