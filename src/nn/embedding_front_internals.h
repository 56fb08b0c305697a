#pragma once

#include "functional/lookup.h"
#include "posenc/nn/embedding_front.h"

namespace posenc {

/// The weights that EmbeddingFront::forward() passes to functional::embedding_front().
functional::EmbeddingFrontWeights front_weights(const EmbeddingFrontImpl& front);

/// The options that it passes with them, without those of its dropout. Throws the errors of
/// forward() for inputs that the front does not use and for more tokens than it has positions.
functional::EmbeddingFrontFuncOptions front_func_options(
    const EmbeddingFrontOptions& options, const functional::EmbeddingFrontWeights& weights,
    const torch::Tensor& ids, const EmbeddingFrontInputs& inputs);

/// The row of the first token that has no given position.
int64_t first_position_row(const EmbeddingFrontOptions& options);

/// The number of tokens that a table of `positions`, which may be undefined, is long enough for.
int64_t front_max_tokens(const EmbeddingFrontOptions& options, const torch::Tensor& positions);

/// position_ids + offset for a table of `rows`. On the CPU, positions outside [0, rows - offset)
/// are refused, by the values that were given.
torch::Tensor shifted_positions(const functional::LookupNames& names,
                                const torch::Tensor& position_ids, int64_t offset, int64_t rows);

}  // namespace posenc
