#pragma once

#include <optional>
#include <vector>

#include "inference/attention/attention.h"
#include "posenc/positions/nn/rotary_embedding.h"
#include "positions/functional/rotary/fusable.h"

namespace posenc::inference {

/// Where the frequencies of a sequence that has more tokens become others.
struct LengthSwitch {
  double length;
  bool is_once;  ///< only there; otherwise at each token from there on
};

/// The rotary embedding of the layers whose options, frequencies and heads are the same.
struct Rotation {
  /// A copy of `source` on the same memory.
  Rotation(const RotaryEmbeddingImpl& source, HeadSizes sizes);
  /// Whether it computes what one of `source` for these heads would.
  bool is_of(const RotaryEmbeddingImpl& source, const HeadSizes& other) const;
  /// Whether a token has a position for each of several axes.
  bool is_axial() const { return rotary->options.rotary().axial(); }

  /// Nothing if the length of a sequence does not matter.
  std::optional<LengthSwitch> length_switch() const;

  RotaryEmbedding rotary;
  /// The same, whose frequencies depend on no earlier call; null where they never do.
  RotaryEmbedding by_call{nullptr};
  HeadSizes sizes;
};

/// The position of each row of a packed batch.
struct RowPositions {
  /// position_ids: (L) or (B, L); undefined for 0, 1, ... in each sequence. `axial`: with an axis
  /// more, of the coordinates of a token.
  RowPositions(const Packing& packing, const at::Tensor& position_ids, bool axial);

  at::Tensor ids;         ///< positions, in any order
  at::Tensor row_of_ids;  ///< int64 (rows): which of them is a row's
  /// Per sequence: the number of its positions; empty if the length of the call is that of all.
  std::vector<int64_t> lengths;
};

/// The factor of the queries of each row.
std::vector<float> query_factors(const QueryGrowth& growth, const RowPositions& positions);

/// Rotates the heads in packed rows of a projection (rows, .), in place.
class RowRotation {
 public:
  RowRotation(const Rotation& rotation, const at::Tensor& projected, const RowPositions& positions);

  /// Rows [begin, end).
  void operator()(int64_t begin, int64_t end) const;

 private:
  struct Pair {
    at::Tensor first, second;     // (rows, heads, head_dim); the second may be undefined
    functional::RotaryPlan plan;  // if they can be rotated in one pass
    bool has_plan;
  };
  void add(const at::Tensor& first, const at::Tensor& second);

  RotaryOptions options_;
  RotaryCosSin table_;
  at::Tensor row_of_table_;
  std::vector<Pair> pairs_;
};

}  // namespace posenc::inference
