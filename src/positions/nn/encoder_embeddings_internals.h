#pragma once

#include "posenc/positions/nn/encoder_embeddings.h"
#include "positions/functional/lookup.h"

namespace posenc {

/// The weights that EncoderEmbeddings::forward() passes to functional::encoder_embeddings().
functional::EncoderEmbeddingsWeights embeddings_weights(const EncoderEmbeddingsImpl& embeddings);

/// What it passes to that function, without the options of its dropout.
struct EmbeddingsCall {
  torch::Tensor ids;
  functional::EncoderEmbeddingsWeights weights;
  functional::EncoderEmbeddingsFuncOptions options;
};

/// The call for these inputs. Throws the errors of forward() for inputs that the embeddings do not
/// use and for more tokens than it has positions.
EmbeddingsCall embeddings_call(const EncoderEmbeddingsOptions& options,
                               const functional::EncoderEmbeddingsWeights& weights,
                               const torch::Tensor& ids, const EncoderEmbeddingsInputs& inputs);

/// The row of the first token that has no given position.
int64_t first_position_row(const EncoderEmbeddingsOptions& options);

/// The number of tokens that a table of `positions`, which may be undefined, is long enough for.
int64_t embeddings_max_tokens(const EncoderEmbeddingsOptions& options,
                              const torch::Tensor& positions);

/// position_ids + offset for a table of `rows`. On the CPU, positions outside [0, rows - offset)
/// are refused, by the values that were given.
torch::Tensor shifted_positions(const functional::LookupNames& names,
                                const torch::Tensor& position_ids, int64_t offset, int64_t rows);

}  // namespace posenc
