#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
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
/// With a window, tokens are dropped that none of the next ones sees, those more than `window`
/// before it, by blocks of 512: the keys that LibTorch's attention takes at a time, so that its
/// parts stay the same. Beside the tokens of a call there are then less than `window` + 512,
/// whatever the capacity.
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
  KeyValueCache(const functional::Heads& like, int64_t capacity,
                std::optional<int64_t> window = std::nullopt);
  KeyValueCache(const KeyValueCache& other);  ///< a deep copy
  /// Takes the memory of `other`, which then has no room.
  KeyValueCache(KeyValueCache&& other) noexcept
      : keys_(std::move(other.keys_)),
        values_(std::move(other.values_)),
        first_(std::exchange(other.first_, 0)),
        length_(std::exchange(other.length_, 0)),
        capacity_(std::exchange(other.capacity_, 0)),
        window_(other.window_) {}
  /// A deep copy.
  KeyValueCache& operator=(const KeyValueCache& other) { return *this = KeyValueCache(other); }
  /// Takes the memory of `other`, which then has no room.
  KeyValueCache& operator=(KeyValueCache&& other) noexcept {
    keys_ = std::move(other.keys_);
    values_ = std::move(other.values_);
    first_ = std::exchange(other.first_, 0);
    length_ = std::exchange(other.length_, 0);
    window_ = other.window_;
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }
  ~KeyValueCache() = default;

  /// Appends the keys and values of t tokens, (B, H, t, Dh), and returns the same query with all
  /// keys and values so far, (B, H, length, Dh), which are views of the cache, or of what a window
  /// leaves of them, the last ones.
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

  /// Removes all tokens except the first `length`. With a window that is 0, or at least the length
  /// before the last call: what is further back may have been dropped.
  void truncate(int64_t length);

  /// Number of tokens in the cache, with those that a window has dropped.
  int64_t length() const { return length_; }
  /// Number of tokens that fit into the cache.
  int64_t capacity() const { return capacity_; }
  /// How many tokens before itself a token may see; any number unless set.
  std::optional<int64_t> window() const { return window_; }

 private:
  int64_t seen_from(int64_t token) const;
  int64_t kept() const { return length_ - first_; }
  void reserve(int64_t end);

  at::Tensor keys_, values_;  // with room for at least kept() tokens, of which the first is first_
  int64_t first_ = 0, length_ = 0, capacity_ = 0;
  std::optional<int64_t> window_;
};

}  // namespace posenc
