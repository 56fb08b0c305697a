#pragma once

#include "posenc/functional/encoder_embeddings.h"

namespace posenc::functional {

/// encoder_embeddings() as separate operations of ATen, in PyTorch's order.
at::Tensor encoder_embeddings_composed(const at::Tensor& ids,
                                       const EncoderEmbeddingsWeights& weights,
                                       const EncoderEmbeddingsFuncOptions& options);

/// The factor of the tokens, rounded according to the options.
double embeddings_scale(const EncoderEmbeddingsFuncOptions& options, const at::Tensor& tokens);

}  // namespace posenc::functional
