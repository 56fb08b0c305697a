#pragma once

#include "posenc/positions/nn/audio_embeddings.h"

namespace posenc {

/// Throws, naming `module`, the errors of AudioEmbeddings for features that are not (B, M, W), or
/// not of the dtype of the weights.
void check_features(const char* module, const torch::Tensor& features,
                    const AudioEmbeddingsOptions& options, at::ScalarType dtype = at::kFloat);

}  // namespace posenc
