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
/// A copy has memory of its own. A call that throws leaves the cache as it was.
/// Errors: c10::ValueError for a token past the capacity, naming it.
class KeyValueCache {
 public:
  KeyValueCache() = default;
  /// Room for `capacity` tokens of the batch, heads and type that `like` has; nothing is stored.
  KeyValueCache(const functional::Heads& like, int64_t capacity);
  KeyValueCache(const KeyValueCache& other);
  KeyValueCache(KeyValueCache&& other) = default;
  KeyValueCache& operator=(const KeyValueCache& other) { return *this = KeyValueCache(other); }
  KeyValueCache& operator=(KeyValueCache&& other) = default;
  ~KeyValueCache() = default;

  /// Stores (B, H, t, Dh) behind what is there; the same query with all keys and values so far,
  /// (B, H, length, Dh), views of the cache.
  functional::Heads append(const functional::Heads& heads);

  /// Batch row b becomes what row `rows`[b] was; rows: int64, as many as now or fewer. For beams.
  void select(const at::Tensor& rows);
  /// The same, by way of room_for() so many rows: caches of one shape can share it.
  void select(const at::Tensor& rows, functional::Heads& room);
  functional::Heads room_for(int64_t rows) const;

  /// Forgets all tokens but the first `length`.
  void truncate(int64_t length);

  int64_t length() const { return length_; }
  int64_t capacity() const { return keys_.defined() ? keys_.size(2) : 0; }

 private:
  at::Tensor keys_, values_;
  int64_t length_ = 0;
};

}  // namespace posenc
