#pragma once

#include "posenc/functional/embedding_front.h"

namespace posenc::functional {

/// embedding_front() as separate operations of ATen, in PyTorch's order.
at::Tensor embedding_front_composed(const at::Tensor& ids, const EmbeddingFrontWeights& weights,
                                    const EmbeddingFrontFuncOptions& options);

/// The factor of the tokens, rounded according to the options.
double front_scale(const EmbeddingFrontFuncOptions& options, const at::Tensor& tokens);

}  // namespace posenc::functional
