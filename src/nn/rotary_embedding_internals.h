#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>

#include "nn/rotary_tables.h"
#include "posenc/nn/rotary_embedding.h"

namespace posenc {

/// What LengthRule::System remembers of the calls so far.
struct RotaryLengths {
  int64_t longest = 0;  ///< the longest sequence
  torch::Tensor grown;  ///< its frequencies, where to() has rounded them; otherwise undefined
};

/// Functions of RotaryEmbedding that it, attention and tests call.
struct RotaryEmbeddingAccess {
  static RotaryLengths lengths(const RotaryEmbeddingImpl& module);
  static void set_lengths(RotaryEmbeddingImpl& module, RotaryLengths lengths);
  /// The tables of the frequencies as they are now.
  static std::shared_ptr<RotaryTables> tables(const RotaryEmbeddingImpl& module);
  /// Calls `to`, a to() of LibTorch, and keeps the frequencies as they were unless it `casts` them.
  static void move(RotaryEmbeddingImpl& module, bool casts, const std::function<void()>& to);

 private:
  static void cast_grown(RotaryEmbeddingImpl& module);
};

}  // namespace posenc
