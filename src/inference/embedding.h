#pragma once

#include "posenc/functional/embed.h"
#include "posenc/nn/token_and_position_embedding.h"

namespace posenc::inference {

/// weight[ids] * scale + table[positions].
struct Embedding {
  Embedding() = default;
  explicit Embedding(const TokenAndPositionEmbedding& embedding);

  /// ids: (B, L)  ->  (B, L, D); the first column is at position `offset`.
  at::Tensor operator()(const at::Tensor& ids, int64_t offset = 0) const;
  /// ids (rows) at the given positions, from sequences of `length`  ->  (rows, D).
  at::Tensor at_positions(const at::Tensor& ids, const at::Tensor& positions, int64_t length) const;

  at::Tensor weight, table;
  Scale scale = Scale::None;
};

}  // namespace posenc::inference
