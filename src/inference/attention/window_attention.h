#pragma once

#include <vector>

#include "inference/attention/attention.h"
#include "posenc/transformer/attention/window_attention.h"

namespace posenc::inference {

/// What a frozen WindowAttention adds to its scores, computed once.
class FrozenWindowAttention {
 public:
  FrozenWindowAttention() = default;
  /// `shift`: that of the layer, for whose rolled maps there are masks.
  FrozenWindowAttention(const WindowAttentionImpl& attention, int64_t shift,
                        AttentionProducts products);

  /// softmax(scores) v of windows, whose rows (., 3 D) have queries, keys and values side by side,
  /// and of which `across` are beside each other in `down` rows of each map  ->  out (., D).
  /// Queries and keys of a cosine attention are normalised in place.
  void attend(const at::Tensor& heads, const HeadSizes& sizes, int64_t batch, relative::Grid counts,
              bool is_shifted, float* out) const;

 private:
  void normalise(const at::Tensor& heads, const HeadSizes& sizes) const;
  void attend_axes(const AttentionInput& input, float* out) const;
  std::vector<const float*> masks_of(int64_t batch, relative::Grid counts) const;

  relative::Grid window_ = {};
  AttentionProducts products_ = AttentionProducts::Float32;
  at::Tensor bias_;   // (1, H, N, N), the keys of a query N apart
  at::Tensor masks_;  // (4, N, N) of windows in the middle, the last column, the last row, and both
  at::Tensor queries_, keys_;  // weights of norms (H, Dh) and (Dh), of a cosine attention
  at::Tensor down_, across_;   // (2 h - 1, Dh) and (2 w - 1, Dh), in reverse order
};

}  // namespace posenc::inference
