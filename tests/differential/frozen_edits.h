#pragma once

#include <torch/nn/module.h>

#include "differential/drawn.h"
#include "posenc/models/encoder.h"
#include "posenc/transformer/transformer.h"

namespace posenc::differential {

/// What a change of a model entitles its frozen one to.
struct Change {
  bool may_refuse = false;  ///< freeze() may refuse the changed model
  bool stales = false;      ///< a frozen model of before must refuse, or compute as the model does
};

TransformerLayerOptions any_layer(Drawn& drawn, int64_t width, int64_t heads);
EncoderEmbeddingsOptions any_embeddings(Drawn& drawn, int64_t vocab, int64_t width);
TokenAndPositionEmbeddingOptions any_embedding(Drawn& drawn, int64_t vocab, int64_t width);

/// Changes a random part of the model: exchanges a module, sets an option, or writes, exchanges,
/// ties or converts a tensor.
Change change_model(Drawn& drawn, torch::nn::Module& root);

/// A float32 NaN of any sign and payload.
at::Tensor any_nan(Drawn& drawn);

}  // namespace posenc::differential
