#pragma once

#include <cstdint>
#include <vector>

#include "inference/attention/attention.h"

namespace posenc::inference {

/// The rows of relative positions of one layer, by the distance d of a key from a query: that of d
/// is row d + reach of each head, (H, 2 reach + 1, Dh), contiguous in each head. Both are
/// multiplied by the scale of the scores; an undefined one is a term that there is not. All are
/// contiguous.
struct PositionHeads {
  at::Tensor keys, queries;
  int64_t reach = 0;
  at::Tensor backward_keys = {};  ///< in place of keys in the second half of the sequences
  at::Tensor key_bias = {};       ///< (H, Dh), added to queries beside the keys of distances
  /// Integers (rows), kLong: the segment of each packed row. Queries are multiplied by the first
  /// vector of segment_keys (H, 2, Dh) for keys of their own segment, and by the second for others.
  at::Tensor segments = {};
  at::Tensor segment_keys = {};
  at::Tensor segment_bias = {};  ///< (H, Dh), added to queries beside segment_keys

  /// The rows of distances from `lowest` on, of a head.
  static const float* rows(const at::Tensor& of, int64_t reach, int64_t head, int64_t lowest) {
    return of.const_data_ptr<float>() + head * of.stride(0) + (lowest + reach) * of.size(2);
  }
};

/// Queries and keys of one head of one sequence, of which all `rows` are computed and `tokens` are
/// no padding; all rows are `stride` apart.
struct OneHead {
  const float *query, *keys, *values;
  int64_t stride, width, queries, rows, tokens;
  Scoring scoring;
};

/// softmax(scores + term) v: the term of a query is `term_stride` from that of the one before.
void attend_with_term(const OneHead& head, const float* term, int64_t term_stride, float* out,
                      int64_t out_stride);

/// The largest distance of two tokens of a sequence.
int64_t reach_of(const Packing& packing);

/// attend() with terms of relative positions: of each query i and key j, q_i . keys(d),
/// k_j . queries(d) and the term of segments are added to the scores. A block of queries at a time,
/// so that no matrix of all heads is made. A token that may attend to no key attends to all tokens
/// of its sequence alike, and padding to all rows, as in masked_weights().
void attend_relative(const AttentionInput& input, const PositionHeads& positions, float* out);

}  // namespace posenc::inference
