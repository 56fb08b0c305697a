#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "inference/attention/attention.h"
#include "inference/attention/relative_bias.h"
#include "kernels/inference.h"

// The keys and values of tokens, which the rows of a decoder share: a token is stored once, in a
// slot that never moves, and a row is a list of pointers to those of its own.

namespace posenc::inference {

/// Memory for tokens, which grows with their number.
class TokenSlots {
 public:
  /// Slots of `floats`.
  explicit TokenSlots(int64_t floats) : stride_(odd_stride(floats)) {}

  /// The first of `count` slots, stride() floats apart. At most `calls` calls more, this one
  /// included, ask for as many. `time` is that of the tokens: it never decreases.
  float* take(int64_t count, int64_t calls, int64_t time = 0);
  /// Frees blocks whose tokens are all from before `time`.
  void drop_before(int64_t time);

  int64_t stride() const { return stride_; }

 private:
  struct Block {
    at::Tensor memory;
    int64_t time;  // of its last token
  };
  int64_t stride_;
  int64_t calls_ = 0;
  std::deque<Block> blocks_;
  float* free_ = nullptr;  // first free slot in the last block, and their number
  int64_t free_slots_ = 0;
};

/// Tokens visible to each row, or set of neighbouring rows, as pointers to their keys and values.
struct VisibleTokens {
  std::vector<const float* const*> tokens;
  std::vector<int64_t> counts;
  std::vector<int64_t> sets;  ///< the first row of each set, and the end of the last; or empty

  void clear() { tokens.clear(), counts.clear(), sets.clear(); }
  void add(const float* const* first, int64_t count) {
    tokens.push_back(first), counts.push_back(count);
  }
  /// Adds row `row`: to the last set, if it sees the same tokens.
  void add_to_set(int64_t row, const float* const* first, int64_t count) {
    if (sets.empty()) sets.push_back(row);
    if (tokens.empty() || tokens.back() != first || counts.back() != count) {
      add(first, count);
      sets.push_back(row);
    }
    sets.back() = row + 1;
  }
};

/// The tokens of each row, in order; null for those that no attention sees any more.
class TokenLists {
 public:
  explicit TokenLists(int64_t rows) : rows_(static_cast<std::size_t>(rows)), next_(rows_.size()) {}

  std::vector<const float*>& of(int64_t row) { return rows_[static_cast<std::size_t>(row)]; }
  const std::vector<const float*>& of(int64_t row) const {
    return rows_[static_cast<std::size_t>(row)];
  }
  /// Row r becomes row rows[r], for `count` rows; those after them are left as they are.
  void select(const int64_t* rows, int64_t count);

 private:
  std::vector<std::vector<const float*>> rows_, next_;
};

/// Runs a request whose queries see these tokens.
void attend_tokens(kernels::inference::AttentionRequest request, const VisibleTokens& seen);

/// Copies `width` floats of each row; rows are `stride` apart in `from`, and those of `to` are
/// where they say, or nowhere.
void keep_rows(const float* from, int64_t stride, const std::vector<float*>& to, int64_t offset,
               int64_t width);

/// What a cache has to know of an attention whose keys and values it has.
struct CachedAttention {
  HeadSizes sizes;
  std::optional<int64_t> window;
};

/// The keys and values of the tokens of a decoder's rows, for all attentions of its layers in the
/// order in which they run. Those with a window keep no more than it needs.
class TokenCache {
 public:
  /// For at most `capacity` tokens in a row, of at most `rows` rows.
  TokenCache(const std::vector<CachedAttention>& attentions, int64_t rows, int64_t capacity);

  /// The number of a row's tokens.
  int64_t length(int64_t row) const { return lengths_[static_cast<std::size_t>(row)]; }
  /// The row, which has no tokens, gets the first `count` tokens of the only row of another cache:
  /// all, or all but the last.
  void share(int64_t row, const std::shared_ptr<const TokenCache>& beginning, int64_t count);
  /// Removes a row's tokens.
  void clear(int64_t row);
  /// Row r becomes row rows[r].
  void select(const std::vector<int64_t>& rows);

  /// Begins a call whose sequence b has the next tokens of row rows[b]. `packing` is that of the
  /// call, whose Packing::past() has the lengths of these rows; they all then have the tokens.
  void begin(const Packing& packing, const std::vector<int64_t>& rows);
  /// Each attention in turn: attend() of the new tokens to all of their rows, and keeps the new
  /// ones' keys and values, which lie side by side.
  void attend(const AttentionInput& input, float* out);
  /// What is added to scores by distance, for the longest row.
  const DistanceRows& distances(const std::vector<RelativeBias>& biases,
                                const std::optional<AlibiSlopes>& alibi);

 private:
  // The attentions with one window, whose keys and values of a token are side by side.
  struct Group {
    std::optional<int64_t> window;
    int64_t floats = 0;  // of a token
    std::optional<TokenSlots> slots = std::nullopt;
    TokenLists lists{0};
    std::vector<float*> targets = {};  // of the call's rows, null for those that are not kept
    VisibleTokens seen = {};           // in a call of one token a row
  };
  struct Place {
    std::size_t group;
    int64_t offset;  // of the keys in a slot, before the values
  };
  void take_slots(Group& group, const Packing& packing);
  void attend_step(const Group& group, int64_t offset, const AttentionInput& input,
                   float* out) const;
  void attend_gathered(const Group& group, int64_t offset, const AttentionInput& input, float* out);

  int64_t capacity_;
  std::vector<int64_t> lengths_;  // of the rows
  std::vector<Group> groups_;
  std::vector<Place> places_;
  std::vector<std::shared_ptr<const TokenCache>> beginnings_;  // whose tokens rows have
  int64_t time_ = 0;              // how many calls have given each row a token
  std::vector<int64_t> of_call_;  // the row of each sequence
  bool is_step_ = false, has_past_ = false;
  std::size_t next_ = 0;  // attention of the call
  at::Tensor gathered_;   // keys and values of whole sequences, of one attention
  std::optional<DistanceRows> distances_;
  int64_t distances_length_ = 0;
};

}  // namespace posenc::inference
