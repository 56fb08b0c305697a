#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "posenc/positions/functional/embed.h"
#include "posenc/positions/functional/encoder_embeddings.h"

namespace posenc::functional {

/// Defines embed() as ATen operations, one after another: look-up, scale, position, dropout. Used
/// wherever is_fusable() returns false: CUDA, tracing, subclasses, transforms. With an undefined
/// table, no positions are added. Checks everything that embed() documents.
at::Tensor embed_composed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                          const EmbedFuncOptions& options);

/// Defines encoder_embeddings() likewise, in PyTorch's order.
at::Tensor encoder_embeddings_composed(const at::Tensor& ids,
                                       const EncoderEmbeddingsWeights& weights,
                                       const EncoderEmbeddingsFuncOptions& options);

/// Whether the six rows of a box are side by side in `width` channels, and no summands.
bool boxes_are_side_by_side(const EncoderEmbeddingsWeights& weights, int64_t width);

/// A table of boxes, and its rows that are added to the tokens; undefined: row 0 for all.
struct BoxRows {
  const at::Tensor* table;
  at::Tensor index;
};
/// Those of boxes `bbox` (..., 4), in the order in which they are added; none without such tables.
std::vector<BoxRows> box_rows(const EncoderEmbeddingsWeights& weights, const at::Tensor& bbox);

/// The factor of an encoder's tokens, rounded according to the options.
double embeddings_scale(const EncoderEmbeddingsFuncOptions& options, const at::Tensor& tokens);

}  // namespace posenc::functional
