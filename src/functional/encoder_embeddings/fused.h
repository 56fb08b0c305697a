#pragma once

#include <ATen/core/Tensor.h>

#include "functional/encoder_embeddings/fusable.h"

namespace posenc::functional {

/// encoder_embeddings() in one pass on the CPU, including its backward, with ATen's projection
/// after it. `plan` is the result of is_fusable() for the same arguments.
at::Tensor encoder_embeddings_fused(EncoderEmbeddingsPlan& plan, const at::Tensor& ids,
                                    const EncoderEmbeddingsWeights& weights,
                                    const EncoderEmbeddingsFuncOptions& options);

}  // namespace posenc::functional
