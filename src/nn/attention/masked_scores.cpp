#include "nn/attention/masked_scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <limits>

#include "functional/attention_mask_internals.h"
#include "relative/masked.h"

namespace posenc {

at::Tensor masked_scores(const at::Tensor& scores, const AttentionMask& mask) {
  const AttentionShape shape = {scores.size(0), scores.size(1), scores.size(2), scores.size(3)};
  const ScoreMask found = AttentionMaskAccess::resolve(mask, shape, scores);
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const at::Scalar lowest = relative::lowest(scores.scalar_type());
  if (found.is_causal) {
    const auto later = at::ones({shape.queries, shape.keys},
                                scores.options().dtype(at::kBool).requires_grad(false))
                           .triu(1);
    return scores.masked_fill(later, lowest);
  }
  if (!found.bias.defined()) return scores;
  return (scores + found.bias)
      .to(scores.scalar_type())  // a bias for half precision may be float32
      .masked_fill(found.bias.eq(kNever), lowest);
}

}  // namespace posenc
