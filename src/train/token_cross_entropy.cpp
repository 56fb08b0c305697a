#include "posenc/train/token_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <optional>

namespace posenc::functional {
namespace {

void check_smoothing(int64_t vocab, const TokenCrossEntropyFuncOptions& options) {
  const bool is_fairseq = options.smoothing() == LabelSmoothing::Fairseq;
  const int64_t least = is_fairseq ? 2 : 3;
  TORCH_CHECK_VALUE(vocab >= least, "[token_cross_entropy] ",
                    is_fairseq ? "LabelSmoothing::Fairseq" : "LabelSmoothing::OpenNMT",
                    " needs at least ", least, " tokens. Got ", vocab);
  TORCH_CHECK_VALUE(
      is_fairseq || (options.ignore_index() >= 0 && options.ignore_index() < vocab),
      "[token_cross_entropy] LabelSmoothing::OpenNMT needs the padding id as ignore_index, in [0, ",
      vocab, "), which gets no share. Got ", options.ignore_index());
}

void check_ids_of(const char* function, const at::Tensor& logits, const char* name,
                  const at::Tensor& ids) {
  TORCH_CHECK_TYPE(logits.is_floating_point(), "[", function, "] logits must be real numbers. Got ",
                   logits.scalar_type());
  TORCH_CHECK_TYPE(ids.scalar_type() == at::kLong, "[", function, "] ", name,
                   " must be ids, int64. Got ", ids.scalar_type());
  TORCH_CHECK_VALUE(logits.dim() > 0 && logits.size(-1) > 0 &&
                        logits.sizes().slice(0, logits.dim() - 1) == ids.sizes(),
                    "[", function, "] logits must be (..., V), V > 0, and ", name, " (...). Got ",
                    logits.sizes(), " and ", ids.sizes());
}

// The sum of p log p over a smoothed target, 0 log 0 = 0.
double negative_entropy(double e, double share) {
  return (e < 1.0 ? (1.0 - e) * std::log(1.0 - e) : 0.0) + (e > 0.0 ? e * std::log(share) : 0.0);
}

// The smoothings that leave out tokens. Rows are summed in float32 for half types.
at::Tensor smoothed(const at::Tensor& logits, const at::Tensor& targets,
                    const TokenCrossEntropyFuncOptions& options) {
  const bool is_half = logits.scalar_type() == at::kHalf || logits.scalar_type() == at::kBFloat16;
  const at::Tensor log_p =
      at::log_softmax(logits, 1, is_half ? std::optional(at::kFloat) : std::nullopt);
  const int64_t ignored = options.ignore_index();
  const at::Tensor is_ignored = targets.eq(ignored);
  const at::Tensor nll =  // sum over the targets
      at::nll_loss(log_p, targets, {}, at::Reduction::Sum, ignored);
  const bool is_fairseq = options.smoothing() == LabelSmoothing::Fairseq;
  at::Tensor shared = log_p.sum(1);  // of all tokens
  if (!is_fairseq) shared = shared - log_p.select(1, ignored);
  const at::Tensor others = -shared.masked_fill(is_ignored, 0).sum() - nll;
  const double e = options.label_smoothing();
  const double share = e / static_cast<double>(log_p.size(1) - (is_fairseq ? 1 : 2));
  const at::Tensor mean = (nll * (1.0 - e) + others * share) / is_ignored.logical_not().sum();
  const at::Tensor value = is_fairseq ? mean : mean + negative_entropy(e, share);
  return is_half ? value.to(logits.scalar_type()) : value;
}

}  // namespace

at::Tensor token_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                               const TokenCrossEntropyFuncOptions& options) {
  const double smoothing = options.label_smoothing();
  TORCH_CHECK_VALUE(smoothing >= 0.0 && smoothing <= 1.0,
                    "[token_cross_entropy] label_smoothing must lie in [0, 1]. Got ", smoothing);
  check_ids_of("token_cross_entropy", logits, "targets", targets);
  const at::Tensor rows = logits.reshape({-1, logits.size(-1)});  // (N, V)
  const at::Tensor flat = targets.reshape({-1});
  if (options.smoothing() == LabelSmoothing::PyTorch) {
    return at::cross_entropy_loss(rows, flat, {}, at::Reduction::Mean, options.ignore_index(),
                                  smoothing);
  }
  check_smoothing(rows.size(1), options);
  return smoothed(rows, flat, options);
}

at::Tensor causal_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                const CausalCrossEntropyFuncOptions& options) {
  check_ids_of("causal_cross_entropy", logits, "labels", labels);
  TORCH_CHECK_VALUE(labels.dim() > 0 && labels.size(-1) > 0,
                    "[causal_cross_entropy] labels must be (..., L), L > 0. Got ", labels.sizes());
  const auto count = options.num_items_in_batch();
  TORCH_CHECK_VALUE(!count || *count > 0,
                    "[causal_cross_entropy] num_items_in_batch must be positive. Got ", *count);
  const bool is_half = logits.scalar_type() == at::kHalf || logits.scalar_type() == at::kBFloat16;
  // Labels are shifted, not logits, which are a copy then.
  const at::Tensor next = at::constant_pad_nd(labels.slice(-1, 1), {0, 1}, options.ignore_index());
  const at::Tensor loss = at::cross_entropy_loss(
      (is_half ? logits.to(at::kFloat) : logits).reshape({-1, logits.size(-1)}), next.reshape({-1}),
      {}, count ? at::Reduction::Sum : at::Reduction::Mean, options.ignore_index());
  return count ? loss / *count : loss;
}

}  // namespace posenc::functional
