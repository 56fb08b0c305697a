#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/weights.h"
#include "posenc/positions/relative/scores.h"

namespace posenc::relative {

using kernels::inference::MaskedRow;

/// How products of queries and keys become weights: the arguments of relative_weights(), and what
/// only modules ask for.
struct Rules {
  Term term = {};
  /// Added, or with Masking::FillLowest bool. With MaskedRow::Alike the keys at which a mask that
  /// is added is -inf are forbidden, as if it had filled them.
  at::Tensor mask = {};
  Scoring scoring = {};
  std::optional<double> scale = std::nullopt;  ///< the factor, unless it is that of the width
  MaskedRow masked_row = MaskedRow::NaN;       ///< what a query gets that sees no key
  bool is_causal = false;                      ///< query i attends to keys 0 .. i
};

/// The square of what the scores are divided by, for heads of this width.
inline double squared_scale(const Scoring& scoring, int64_t width) {
  return static_cast<double>(width * scoring.products);
}

/// The sizes (..., Q, K) of the scores of q (..., Q, D) and k (..., K, D).
std::vector<int64_t> sizes_of_scores(const at::Tensor& q, const at::Tensor& k);

/// Whether the kernels compute on these tensors what LibTorch's operations would: float32 on the
/// CPU, which nobody traces. They may require gradients.
bool can_weigh(const at::Tensor& q, const at::Tensor& k, const Rules& rules);

/// Whether autograd would record an operation on them.
bool is_recorded(const at::Tensor& q, const at::Tensor& k, const Rules& rules);

/// What the rows become.
enum class Weighed { Scores, Weights };

/// The scores or the weights (..., Q, K), a block of rows at a time: its products stay in a cache
/// until they are weights, and so do those with the vectors of distances. Not recorded.
at::Tensor weighed(const at::Tensor& q, const at::Tensor& k, const Rules& rules, Weighed kind);

/// The scores of the products (..., Q, K), which are contiguous, in their memory; with the bits of
/// LibTorch's operations. The scoring's scale is that of the products, or of the sum.
void finish_scores_(const at::Tensor& products, const Rules& rules, int64_t width);

}  // namespace posenc::relative
