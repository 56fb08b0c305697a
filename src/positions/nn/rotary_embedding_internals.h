#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>

#include "posenc/positions/nn/rotary_embedding.h"
#include "positions/nn/rotary_tables.h"

namespace posenc {

/// The length that determines the frequencies of a sequence: 0 for those that are not longer than
/// in pretraining; except for rotary::Dynamic, all longer ones give the same.
int64_t frequency_length(const RotaryOptions& options, int64_t length);

/// Functions of RotaryEmbedding that it, attention and tests call.
struct RotaryEmbeddingAccess {
  static RotaryLengths lengths(const RotaryEmbeddingImpl& module);
  static void set_lengths(RotaryEmbeddingImpl& module, RotaryLengths lengths);
  /// What the frequencies depend on, as it is now.
  static RotarySource source(const RotaryEmbeddingImpl& module);
  /// The tables of source().
  static std::shared_ptr<RotaryTables> tables(const RotaryEmbeddingImpl& module);
  /// Calls `to`, a to() of LibTorch, and keeps the frequencies as they were unless it `casts` them.
  static void move(RotaryEmbeddingImpl& module, bool casts, const std::function<void()>& to);

 private:
  static void cast_grown(RotaryEmbeddingImpl& module);
};

}  // namespace posenc
