#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "inference/linear/weight_converter.h"
#include "inference/rows/packing.h"
#include "inference/rows/stream.h"
#include "posenc/positions/functional/embed.h"
#include "posenc/positions/nn/audio_embeddings.h"
#include "posenc/positions/nn/token_and_position_embedding.h"

namespace posenc::inference {

/// A table of positions that is computed further when longer sequences come; for many threads.
class GrowingTable {
 public:
  GrowingTable(at::Tensor table, SinusoidOptions sinusoid)
      : table_(std::move(table)), sinusoid_(std::move(sinusoid)) {}

  /// The table, (1, >= rows, D). Later growth does not affect it.
  at::Tensor table(int64_t rows);

 private:
  std::mutex mutex_;
  at::Tensor table_;
  SinusoidOptions sinusoid_;
};

/// A frozen TokenAndPositionEmbedding.
struct Embedding {
  Embedding() = default;
  /// Of an embedding that check_freezable() accepts.
  Embedding(const TokenAndPositionEmbedding& embedding, WeightConverter& convert);

  /// ids: (B, L)  ->  (B, L, D); the first column is at position `offset`. `position_ids` (B, L)
  /// may replace the positions, at most those that `offset` allows: rows of the table where
  /// positions are of ids.
  at::Tensor operator()(const at::Tensor& ids, int64_t offset = 0,
                        const at::Tensor& position_ids = {}) const;
  /// ids: (B, L)  ->  (rows, D), those that `packing` keeps. Ids under padding are only checked.
  at::Tensor packed(const at::Tensor& ids, const Packing& packing) const;

  int64_t vocab_size() const { return converted ? converted->vocab_size() : weight.size(0); }

  /// weight: undefined if it is converted; table: without positions
  at::Tensor weight, table;
  std::optional<ConvertedTable> converted;
  Scale scale = Scale::None;
  std::optional<int64_t> padding_idx = std::nullopt;  ///< whose tokens are not counted
  int64_t first_row = 0;                              ///< of the table, that of position 0
  std::shared_ptr<GrowingTable> growing = nullptr;    ///< in place of the table
  Norm norm = {};
  bool normalises_tokens = false;  ///< before positions are added

 private:
  void check_ids(const at::Tensor& ids) const;
  void check_length(int64_t length, int64_t offset) const;
  /// The rows of the ids, not scaled: a matrix, and the ids in it.
  std::pair<at::Tensor, at::Tensor> tokens(const at::Tensor& ids) const;
  /// `rows`: how many of the table they may need.
  at::Tensor look_up(const at::Tensor& ids, int64_t rows,
                     const functional::PositionalEncodingFuncOptions& position) const;
};

/// A frozen AudioEmbeddings. A convolution is a product with the rows of three frames side by side,
/// which lie so in memory: neighbouring rows overlap.
struct AudioRows {
  /// Of embeddings that check_freezable() accepts.
  AudioRows(const AudioEmbeddingsImpl& embeddings, WeightConverter& convert);

  /// features: (B, M, W), checked by check_features()  ->  (B * W / 2, D).
  at::Tensor rows(const at::Tensor& features) const;
  int64_t positions() const { return table.size(0); }  ///< W / 2

  Projection conv1, conv2;  ///< (D, 3 M), (D, 3 D)
  at::Tensor table;         ///< (W / 2, D)
};

}  // namespace posenc::inference
