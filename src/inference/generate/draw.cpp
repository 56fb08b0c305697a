#include <algorithm>
#include <cmath>
#include <limits>

#include "inference/generate/step_model.h"

namespace posenc {
namespace {

using torch::Tensor;

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr int64_t kMostOfTopH = 100;  // as in transformers

// `scores` without the tokens that `removed`, in the order of `indices`, is true for.
Tensor without(const Tensor& scores, const Tensor& indices, const Tensor& removed) {
  return scores.masked_fill(torch::zeros_like(removed).scatter(1, indices, removed), kNever);
}

Tensor entropy(const Tensor& scores) {
  const auto log = scores.log_softmax(1);
  return -(log * log.exp()).nansum(1, /*keepdim=*/true);
}

Tensor top_h(const Tensor& scores, double share) {
  const auto [best, indices] = scores.topk(std::min(kMostOfTopH, scores.size(1)), 1);
  const auto log = best.log_softmax(1);
  const auto terms = (-(log * log.exp())).nan_to_num(0.0);
  auto kept = terms.cumsum(1) <= terms.sum(1, /*keepdim=*/true) * share;
  kept.select(1, 0).fill_(true);
  return scores.masked_fill(
      torch::zeros_like(scores, torch::kBool).scatter(1, indices, kept).logical_not(), kNever);
}

Tensor top_k(const Tensor& scores, int64_t count) {
  const auto kth = std::get<0>(scores.topk(count, 1)).narrow(1, count - 1, 1);
  return scores.masked_fill(scores < kth, kNever);
}

// Sums from the least probable token, as transformers does, which decides about roundings.
Tensor top_p(const Tensor& scores, double mass) {
  const auto [sorted, indices] = scores.sort(1, /*descending=*/false);
  auto removed = sorted.softmax(1).cumsum(1) <= 1.0 - mass;
  removed.select(1, -1).fill_(false);
  return without(scores, indices, removed);
}

Tensor at_least(const Tensor& scores, const Tensor& probabilities, const Tensor& least) {
  const auto removed = (probabilities < least).logical_and(scores < scores.amax(1, true));
  return scores.masked_fill(removed, kNever);
}

Tensor typical_p(const Tensor& scores, double mass) {
  const auto distance = (-scores.log_softmax(1) - entropy(scores)).abs();
  const auto [sorted, indices] = distance.sort(1, /*descending=*/false);
  const auto sums = scores.gather(1, indices).softmax(1).cumsum(1);
  const auto last = (sums < mass).sum(1, /*keepdim=*/true).clamp_max(scores.size(1) - 1);
  return without(scores, indices, sorted > sorted.gather(1, last));
}

}  // namespace

Tensor filtered(const Tensor& scores, const GenerateOptions& options) {
  // Relative to the best, so that a low temperature cannot turn all of them into -inf.
  Tensor kept = (scores - scores.amax(1, /*keepdim=*/true)) / options.temperature();
  if (options.top_h()) kept = top_h(kept, *options.top_h());
  if (options.top_k() > 0 && options.top_k() < kept.size(1)) kept = top_k(kept, options.top_k());
  if (options.top_p() < 1.0) kept = top_p(kept, options.top_p());
  if (options.min_p()) {
    const auto shares = kept.softmax(1);
    kept = at_least(kept, shares, shares.amax(1, /*keepdim=*/true) * *options.min_p());
  }
  if (options.typical_p() < 1.0) kept = typical_p(kept, options.typical_p());
  if (options.epsilon_cutoff() > 0.0) {
    const auto shares = kept.softmax(1);
    kept =
        at_least(kept, shares, torch::full_like(shares.narrow(1, 0, 1), options.epsilon_cutoff()));
  }
  if (const double eta = options.eta_cutoff(); eta > 0.0) {
    const auto least = (entropy(kept).neg().exp() * std::sqrt(eta)).clamp_max(eta);
    kept = at_least(kept, kept.softmax(1), least);
  }
  return kept;
}

Tensor log_probabilities_at(const Tensor& scores, const Tensor& ids) {
  const auto sum = functional::log_sum_exp(scores);
  return (scores.gather(1, ids.unsqueeze(1)).squeeze(1) - sum.largest) - sum.rest;
}

Drawn draw(const Tensor& scores, const GenerateOptions& options,
           const std::optional<at::Generator>& generator) {
  const Tensor kept = filtered(scores, options);
  const Tensor ids = kept.softmax(1).multinomial(1, /*replacement=*/false, generator).squeeze(1);
  if (!options.return_log_probability()) return {ids, {}};
  return {ids, log_probabilities_at(kept * options.temperature(), ids)};
}

}  // namespace posenc
