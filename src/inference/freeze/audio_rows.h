#pragma once

#include "inference/linear/weight_converter.h"
#include "posenc/positions/nn/audio_embeddings.h"

namespace posenc::inference {

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
