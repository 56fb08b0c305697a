#pragma once

#include "posenc/functional/positional_encoding.h"
#include "posenc/functional/token_embedding.h"

namespace posenc::functional {

struct EmbedFuncOptions {
  TORCH_ARG(Scale, scale) = Scale::None;
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  TORCH_ARG(PositionalEncodingFuncOptions, position) = {};
  /// Probability with which an element of the sum is zeroed, in [0, 1); only while training.
  TORCH_ARG(double, dropout) = 0.0;
  TORCH_ARG(bool, training) = false;
};

/// Token ids to the input of a Transformer's first layer, in the order of the third notebook:
/// dropout(weight[ids] * scale + table[positions]).
///
/// ids: (B, L), (L, B) or (L); weight: (V, D); table: (rows, D) or (1, rows, D)  ->  (..., D).
/// The functional twin of InputEmbedding and TokenAndPositionEmbedding. Errors: those of
/// token_embedding() and positional_encoding(), and c10::ValueError for dropout outside [0, 1).
at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                 const EmbedFuncOptions& options = {});

}  // namespace posenc::functional
