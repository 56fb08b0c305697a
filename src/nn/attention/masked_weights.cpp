#include "nn/attention/masked_weights.h"

#include "functional/attention_mask_internals.h"
#include "relative/weights.h"

namespace posenc {

at::Tensor masked_weights(const at::Tensor& q, const at::Tensor& k, const relative::Term& term,
                          double scale, const AttentionMask& mask) {
  const AttentionShape shape = {q.size(0), q.size(1), q.size(2), k.size(2)};
  const ScoreMask found = AttentionMaskAccess::resolve(mask, shape, q);
  relative::Rules rules = {term, found.bias, {relative::ScaleOf::ScoresAndTerm}, scale};
  rules.masked_row = relative::MaskedRow::Alike;
  rules.is_causal = found.is_causal;
  return relative::weights(q, k, rules);
}

}  // namespace posenc
