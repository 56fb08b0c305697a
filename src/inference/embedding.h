#pragma once

#include <optional>

#include "inference/weight_converter.h"
#include "posenc/functional/embed.h"
#include "posenc/nn/token_and_position_embedding.h"

namespace posenc::inference {

/// weight[ids] * scale + table[positions].
struct Embedding {
  Embedding() = default;
  /// Of an embedding that check_freezable() accepts.
  Embedding(const TokenAndPositionEmbedding& embedding, WeightConverter& convert);

  /// ids: (B, L)  ->  (B, L, D); the first column is at position `offset`.
  at::Tensor operator()(const at::Tensor& ids, int64_t offset = 0) const;
  /// Throws as the module does for ids outside the vocabulary, which at_positions() does not see
  /// under padding.
  void check_ids(const at::Tensor& ids) const;
  /// ids (rows) at the given positions, from sequences of `length`  ->  (rows, D).
  at::Tensor at_positions(const at::Tensor& ids, const at::Tensor& positions, int64_t length) const;

  int64_t vocab_size() const { return converted ? converted->vocab_size() : weight.size(0); }

  at::Tensor weight, table;  ///< weight: undefined if it is converted
  std::optional<ConvertedTable> converted;
  Scale scale = Scale::None;

 private:
  at::Tensor look_up(const at::Tensor& ids,
                     const functional::PositionalEncodingFuncOptions& position) const;
};

}  // namespace posenc::inference
