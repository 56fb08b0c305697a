#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "posenc/export.h"
#include "posenc/transformer/functional/multihead_attention.h"

namespace posenc POSENC_EXPORT {

/// The keys and values of the tokens that a decoder has processed, (B, H, T, Dh) each, so that each
/// token is projected only once. Memory grows with the tokens, up to twice what they need and at
/// most that of the capacity. For inference only: gradients are not recorded.
/// ```cpp
/// posenc::KeyValueCache cache(heads, /*capacity=*/128);
/// heads = cache.append(heads);  // the query, and all keys and values so far
/// ```
/// Copies are deep. A call that throws leaves the cache unchanged.
///
/// Errors: c10::ValueError, naming the token, for one that exceeds the capacity; for heads of other
/// sizes; for more rows than there are; for append() and select() outside InferenceMode of a cache
/// that was made in it, unless it is copied. c10::TypeError for heads of another dtype, unless
/// autocast is enabled.
class KeyValueCache {
 public:
  KeyValueCache() = default;
  /// An empty cache for `capacity` tokens with the batch size, heads, dtype and device of `like`.
  KeyValueCache(const functional::Heads& like, int64_t capacity);
  KeyValueCache(const KeyValueCache& other);  ///< a deep copy
  /// Takes the memory of `other`, which then has no room.
  KeyValueCache(KeyValueCache&& other) noexcept
      : keys_(std::move(other.keys_)),
        values_(std::move(other.values_)),
        length_(std::exchange(other.length_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  /// A deep copy.
  KeyValueCache& operator=(const KeyValueCache& other) { return *this = KeyValueCache(other); }
  /// Takes the memory of `other`, which then has no room.
  KeyValueCache& operator=(KeyValueCache&& other) noexcept {
    keys_ = std::move(other.keys_);
    values_ = std::move(other.values_);
    length_ = std::exchange(other.length_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }
  ~KeyValueCache() = default;

  /// Appends the keys and values of t tokens, (B, H, t, Dh), and returns the same query with all
  /// keys and values so far, (B, H, length, Dh), which are views of the cache.
  functional::Heads append(const functional::Heads& heads);

  /// Replaces each batch row b by row `rows`[b], as beam search does when it reorders beams.
  /// `rows` is int64 and may have fewer entries than there are rows, but not more.
  void select(const at::Tensor& rows);
  /// select() with the temporary memory of room_for(), which caches of equal shape can share.
  void select(const at::Tensor& rows, functional::Heads& room);
  /// Whether both caches can share that memory: heads, widths, dtypes and lengths are equal.
  bool shares_room(const KeyValueCache& other) const;
  /// Allocates the temporary memory that select() needs for this many rows.
  functional::Heads room_for(int64_t rows) const;

  /// A cache whose row b is row `rows`[b] of this one, of which there may be more: the rows that
  /// continue one prompt.
  KeyValueCache repeated(const at::Tensor& rows) const;

  /// Removes all tokens except the first `length`.
  void truncate(int64_t length);

  /// Number of tokens in the cache.
  int64_t length() const { return length_; }
  /// Number of tokens that fit into the cache.
  int64_t capacity() const { return capacity_; }

 private:
  void reserve(int64_t tokens);

  at::Tensor keys_, values_;  // with room for at least length_ tokens
  int64_t length_ = 0, capacity_ = 0;
};

}  // namespace posenc
