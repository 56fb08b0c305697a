#pragma once

#include "posenc/nn/rotary_embedding.h"

namespace posenc {

/// Functions of RotaryEmbedding that only attention calls.
struct RotaryEmbeddingAccess {
  /// The longest sequence of the calls so far, which LengthRule::System remembers.
  static int64_t longest(const RotaryEmbeddingImpl& module);
  static void set_longest(RotaryEmbeddingImpl& module, int64_t longest);
};

}  // namespace posenc
