#pragma once

#include "posenc/nn/rotary_embedding.h"

namespace posenc {

/// Functions of RotaryEmbedding that only attention calls.
struct RotaryEmbeddingAccess {
  /// cos and sin of the positions from `offset` on, for as many tokens as `like` has, on its device
  /// and for its dtype. Does not synchronise with the device.
  static RotaryCosSin rows(RotaryEmbeddingImpl& module, const torch::Tensor& like, int64_t offset);
};

}  // namespace posenc
