#pragma once

#include <ATen/core/Tensor.h>

#include "functional/encoder_embeddings/fusable.h"

namespace posenc::functional {

/// Tensors that the kernel writes for the backward; undefined if they are not needed.
struct EmbeddingsSaved {
  at::Tensor mask;             // the dropout bits
  at::Tensor sum, mean, rstd;  // the rows before the norm; (..., 1)
};

/// Makes `out` the result of plan.request on `weights` in the autograd graph.
void record(const at::Tensor& out, const EncoderEmbeddingsPlan& plan,
            const EncoderEmbeddingsWeights& weights, const EmbeddingsSaved& saved);

}  // namespace posenc::functional
