#pragma once

#include <memory>

#include "inference/embedding.h"
#include "inference/layers.h"
#include "inference/stale_check.h"

namespace posenc::inference {

/// The implementation of FrozenTransformerEncoder.
struct TransformerEncoderModel {
  TransformerEncoderOptions options;
  StaleCheck stale_check;
  std::unique_ptr<const FrozenLayers> layers;
};

/// The implementation of FrozenTransformer.
struct TransformerModel {
  TransformerOptions options;
  StaleCheck stale_check;
  Embedding src_embedding, tgt_embedding;
  std::unique_ptr<const FrozenLayers> encoder;
  DecoderStack decoder;
  Projection final_layer;
};

/// Wraps and unwraps the implementations of the public classes.
struct FrozenAccess {
  static FrozenTransformerEncoder wrap(std::shared_ptr<const TransformerEncoderModel> model) {
    return FrozenTransformerEncoder(std::move(model));
  }
  static FrozenTransformer wrap(std::shared_ptr<const TransformerModel> model) {
    return FrozenTransformer(std::move(model));
  }
  /// Keeps the model alive while a call runs: a callback may assign another one to `frozen`.
  static std::shared_ptr<const TransformerModel> model(const FrozenTransformer& frozen) {
    return frozen.model_;
  }
};

/// The encoder's output for a batch.
struct Memory {
  at::Tensor rows;  ///< (rows, D)
  Packing packing;
};

/// Encodes ids (B, S), skipping padding.
Memory encode(const TransformerModel& model, const at::Tensor& src, const AttentionMask& src_mask);

}  // namespace posenc::inference
