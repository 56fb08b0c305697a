#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/multihead_attention.h"

namespace posenc {

/// The keys and values that a decoder has seen, (B, H, T, Dh) each, in memory for all T from the
/// beginning: decoding token by token projects each token once. For inference: no gradients.
/// ```cpp
/// posenc::KeyValueCache cache(heads, /*capacity=*/128);
/// heads = cache.append(heads);  // the query, and all keys and values so far
/// ```
/// Errors: c10::ValueError for a token past the capacity, naming it.
class KeyValueCache {
 public:
  KeyValueCache() = default;
  /// Room for `capacity` tokens of the batch, heads and type that `like` has; nothing is stored.
  KeyValueCache(const functional::Heads& like, int64_t capacity);

  /// Stores (B, H, t, Dh) behind what is there; the same query with all keys and values so far,
  /// (B, H, length, Dh), views of the cache.
  functional::Heads append(const functional::Heads& heads);

  /// Batch row b becomes what row `rows`[b] was; rows: int64, as many as now or fewer. For beams.
  void select(const at::Tensor& rows);

  int64_t length() const { return length_; }
  int64_t capacity() const { return keys_.defined() ? keys_.size(2) : 0; }

 private:
  at::Tensor keys_, values_;
  int64_t length_ = 0;
};

}  // namespace posenc
