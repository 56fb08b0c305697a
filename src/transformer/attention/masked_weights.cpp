#include "transformer/attention/masked_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include <limits>

#include "core/torch_internals/shortcut.h"
#include "positions/relative/weights.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc {
namespace {

// Gives tokens that may attend to no key the same weight for all `tokens` (B, S) of their sequence.
// Those of padding have it for all keys already.
at::Tensor without_padding(const at::Tensor& weights, const ScoreMask& mask,
                           const at::Tensor& tokens) {
  if (!tokens.defined() || !mask.bias.defined()) return weights;
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const at::Tensor is_blind =
      mask.bias.eq(kNever).all(-1, /*keepdim=*/true).logical_and(tokens.unsqueeze(1).unsqueeze(3));
  const bool may_look = weights.is_cpu() && torch_internals::dispatches_plainly();
  if (may_look && !is_blind.any().item<bool>()) return weights;
  const at::Tensor own = tokens.unsqueeze(1).unsqueeze(2).to(
      weights.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor shares = own / own.sum(-1, /*keepdim=*/true);
  return at::where(is_blind, shares.to(weights.scalar_type()), weights);
}

}  // namespace

at::Tensor masked_weights(const at::Tensor& q, const at::Tensor& k, const relative::Term& term,
                          double scale, const AttentionMask& mask) {
  const AttentionShape shape = {q.size(0), q.size(1), q.size(2), k.size(2)};
  const ScoreMask found = AttentionMaskAccess::resolve(mask, shape, q);
  relative::Rules rules = {term, found.bias, {relative::ScaleOf::ScoresAndTerm}, scale};
  rules.masked_row = relative::MaskedRow::Alike;
  rules.is_causal = found.is_causal;
  return without_padding(relative::weights(q, k, rules), found, mask.padding_keys());
}

}  // namespace posenc
