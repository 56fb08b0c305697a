#include "positions/relative/weights.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/torch_internals/backward_node.h"
#include "core/torch_internals/profiled.h"
#include "core/torch_internals/shortcut.h"
#include "positions/relative/masked.h"

namespace posenc {
namespace relative {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Whether a mask forbids a key, whose score MaskedRow::Alike makes the lowest; undefined where keys
// are not filled.
at::Tensor forbidden(const at::Tensor& mask, MaskedRow masked_row) {
  if (masked_row != MaskedRow::Alike || !mask.defined()) return {};
  return mask.scalar_type() == at::kBool ? mask.logical_not() : mask.eq(kNever);
}

at::Tensor composed_weights(const at::Tensor& q, const at::Tensor& k, const Rules& rules) {
  const auto dtype = q.scalar_type();
  const bool is_alike = rules.masked_row == MaskedRow::Alike;
  at::Tensor scores = composed_scores(q, k, rules);
  // A mask for half precision may be float32.
  if (is_alike && !rules.scoring.in_float32) scores = scores.to(dtype);
  const at::Scalar filled = is_alike ? lowest(scores.scalar_type()) : at::Scalar(kNever);
  if (rules.is_causal) {
    const at::Tensor later = at::ones({scores.size(-2), scores.size(-1)},
                                      scores.options().dtype(at::kBool).requires_grad(false))
                                 .triu(1);
    scores = scores.masked_fill(later, filled);
  }
  switch (rules.masked_row) {
    case MaskedRow::Zeros: return at::_safe_softmax(scores, -1).to(dtype);
    case MaskedRow::Alike: {
      const at::Tensor never = forbidden(rules.mask, rules.masked_row);
      return (never.defined() ? scores.masked_fill(never, filled) : scores).softmax(-1).to(dtype);
    }
    case MaskedRow::NaN: break;
  }
  const bool widens = at::isReducedFloatingType(scores.scalar_type());
  return scores.softmax(-1, widens ? at::kFloat : scores.scalar_type()).to(dtype);
}

// The pass, with the gradient of the composition. Its term is a tensor, or none. What no gradient
// needs is not saved, as by LibTorch: it may change meanwhile, and may be an inference tensor.
struct RelativeWeightsBackward : torch_internals::BackwardNode {
  RelativeWeightsBackward(const at::Tensor& q_of, const at::Tensor& k_of, const Rules& of)
      : BackwardNode("RelativeWeightsBackward"),
        q(torch_internals::save_for_backward(k_of.requires_grad() ? q_of : at::Tensor())),
        k(torch_internals::save_for_backward(q_of.requires_grad() ? k_of : at::Tensor())),
        never(torch_internals::save_for_backward(forbidden(of.mask, of.masked_row))),
        scoring(of.scoring),
        factor(of.scale.value_or(std::pow(squared_scale(of.scoring, q_of.size(-1)), -0.5))),
        q_sizes(q_of.sizes().vec()),
        k_sizes(k_of.sizes().vec()) {
    const auto& term = std::get<at::Tensor>(of.term);
    if (term.defined()) term_sizes = term.sizes().vec();
  }
  torch_internals::Gradients backward(const at::Tensor& grad) override;
  void release() override {
    q.reset_data(), k.reset_data(), never.reset_data(), weights.reset_data();
    is_released = true;
  }

  torch_internals::SavedVariable q, k, never, weights;
  const Scoring scoring;
  const double factor;
  const std::vector<int64_t> q_sizes, k_sizes;
  std::vector<int64_t> term_sizes;
  bool is_released = false;
};

// By operations that can themselves be differentiated.
torch_internals::Gradients RelativeWeightsBackward::backward(const at::Tensor& grad) {
  const torch_internals::Profiled profiled("posenc::relative_weights_backward", grad);
  torch_internals::check_not_released(!is_released);
  at::Tensor of_scores = at::_softmax_backward_data(grad, weights.unpack(getptr()), -1, at::kFloat);
  const at::Tensor hidden = never.unpack();
  if (hidden.defined()) of_scores = of_scores.masked_fill(hidden, 0.0);
  const bool scales_sum = scoring.scale_of == ScaleOf::ScoresAndTerm;
  if (scales_sum) of_scores = of_scores * factor;
  torch_internals::Gradients grads(3);
  if (wants(2)) {
    grads[2] = at::sum_to(of_scores, term_sizes);
    if (scoring.scales_term) grads[2] = grads[2] * factor;
  }
  if (!wants(0) && !wants(1)) return grads;
  if (!scales_sum && scoring.scale_of != ScaleOf::Nothing) of_scores = of_scores * factor;
  if (wants(0)) grads[0] = at::sum_to(at::matmul(of_scores, k.unpack()), q_sizes);
  if (wants(1)) grads[1] = at::sum_to(at::matmul(of_scores.transpose(-1, -2), q.unpack()), k_sizes);
  return grads;
}

at::Tensor recorded_weights(const at::Tensor& q, const at::Tensor& k, const Rules& rules) {
  Rules of_pairs = rules;
  of_pairs.term = pairs_of(rules.term, q, k);
  at::Tensor out;
  {
    const at::NoGradGuard no_grad;
    out = weighed(q, k, of_pairs, Weighed::Weights);
  }
  auto node = torch_internals::make_node<RelativeWeightsBackward>(q, k, of_pairs);
  auto& saved = *node;  // which the result owns from now on
  torch_internals::set_history(out, std::move(node), {q, k, std::get<at::Tensor>(of_pairs.term)});
  saved.weights = torch_internals::save_result(out);
  return out;
}

}  // namespace

at::Tensor weights(const at::Tensor& q, const at::Tensor& k, const Rules& rules) {
  if (!can_weigh(q, k, rules)) return composed_weights(q, k, rules);
  if (!is_recorded(q, k, rules)) return weighed(q, k, rules, Weighed::Weights);
  // No model learns its mask.
  if (rules.mask.defined() && torch_internals::is_recorded(rules.mask))
    return composed_weights(q, k, rules);
  return recorded_weights(q, k, rules);
}

}  // namespace relative

at::Tensor relative_weights(const at::Tensor& q, const at::Tensor& k, const relative::Term& term,
                            const at::Tensor& mask, const relative::Scoring& scoring) {
  relative::Rules rules = {term, mask, scoring};
  if (scoring.masking == relative::Masking::FillLowest)
    rules.masked_row = relative::MaskedRow::Alike;
  relative::check_scores("relative_weights", q, k, rules);
  return relative::weights(q, k, rules);
}

}  // namespace posenc
