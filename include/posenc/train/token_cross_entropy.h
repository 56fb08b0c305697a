#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>
#include <optional>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Whose label smoothing: which tokens share e of the target distribution.
enum class LabelSmoothing {
  /// All V tokens, e / V each, the target included: torch.nn.CrossEntropyLoss, as in the paper.
  PyTorch,
  /// The others than the target, e / (V - 1) each: fairseq's label_smoothed_cross_entropy.
  Fairseq,
  /// The others than the target and the padding id, e / (V - 2) each, and the value is the
  /// Kullback-Leibler divergence, the cross entropy less the entropy of the targets: OpenNMT's
  /// LabelSmoothingLoss and joeynmt's XentLoss. Needs ignore_index in [0, V).
  OpenNMT,
};

namespace functional POSENC_EXPORT {

/// Options of token_cross_entropy().
struct TokenCrossEntropyFuncOptions {
  /// The share e of the target distribution that is spread evenly over other tokens, in [0, 1].
  TORCH_ARG(double, label_smoothing) = 0.0;
  /// Over which.
  TORCH_ARG(LabelSmoothing, smoothing) = LabelSmoothing::PyTorch;
  /// Targets with this id are ignored; set it to the padding id.
  TORCH_ARG(int64_t, ignore_index) = -100;
};

/// Cross entropy with label smoothing, averaged over the N targets that are not ignored:
///
///     1 / N sum_i [(1 - e) (-log p_i[y_i]) + e / V sum_v (-log p_i[v])],  p_i = softmax(logits_i)
///
/// logits: (..., V), targets: (...), int64, such as (B, L, V) and (B, L)  ->  ().
///
/// The same value as torch.nn.CrossEntropyLoss, which takes logits (B, V, L); NaN, as there, if all
/// targets are ignored. The formula is that of LabelSmoothing::PyTorch; the other systems' losses
/// are sums, which they divide by the number of targets, as the mean here does.
///
/// ```cpp
/// torch::Tensor logits = torch::randn({2, 3, 100}, torch::requires_grad());
/// torch::Tensor targets = torch::tensor({{5, 6, 7}, {8, 9, 0}});
/// auto options = posenc::functional::TokenCrossEntropyFuncOptions().ignore_index(0);
/// posenc::functional::token_cross_entropy(logits, targets, options).backward();
/// ```
///
/// Errors: c10::ValueError for wrong shapes, V = 0 and a label_smoothing out of range, for fewer
/// tokens or another ignore_index than the smoothing needs;
/// c10::TypeError for wrong dtypes; c10::IndexError for a target outside [0, V).
///
/// Source: Szegedy et al. 2016, 7; "Attention Is All You Need", 5.4.
at::Tensor token_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                               const TokenCrossEntropyFuncOptions& options = {});

/// Options of causal_cross_entropy().
struct CausalCrossEntropyFuncOptions {
  /// Labels with this id are ignored: those of padding and of a prompt.
  TORCH_ARG(int64_t, ignore_index) = -100;
  /// What the sum is divided by, such as the number of labels in all batches whose gradients
  /// accumulate; unless set, that of these labels that are not ignored.
  TORCH_ARG(std::optional<int64_t>, num_items_in_batch) = std::nullopt;
};

/// The loss of a causal language model: the cross entropy of each label but the first given the
/// column before it, of half types in float32,
///
///     1 / N sum_i -log softmax(logits[..., i, :])[labels[..., i + 1]]
///
/// over the N labels that are not ignored, or num_items_in_batch. NaN if all are ignored.
///
/// logits: (..., L, V), labels: (..., L), int64, commonly the ids themselves  ->  ().
///
/// ```cpp
/// torch::Tensor ids = torch::tensor({{5, 6, 7}, {8, 9, 0}});
/// torch::Tensor logits = torch::randn({ids.size(0), ids.size(1), 100}, torch::requires_grad());
/// posenc::functional::causal_cross_entropy(logits, ids.masked_fill(ids.eq(0), -100)).backward();
/// ```
///
/// Errors: those of token_cross_entropy(); c10::ValueError for L = 0 and a num_items_in_batch that
/// is not positive.
///
/// Source: ForCausalLMLoss of transformers 5.23.
at::Tensor causal_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                const CausalCrossEntropyFuncOptions& options = {});

}  // namespace functional
}  // namespace posenc
