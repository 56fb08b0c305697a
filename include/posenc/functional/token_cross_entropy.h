#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>

namespace posenc::functional {

struct TokenCrossEntropyFuncOptions {
  /// The share of the target that is spread evenly over all V tokens, in [0, 1].
  TORCH_ARG(double, label_smoothing) = 0.0;
  /// Targets of this id do not count: the padding's.
  TORCH_ARG(int64_t, ignore_index) = -100;
};

/// Cross entropy of each token, label smoothed, as the mean over the N targets that count:
///
///     1 / N sum_i [(1 - e) (-log p_i[y_i]) + e / V sum_v (-log p_i[v])],  p_i = softmax(logits_i)
///
/// logits: (..., V), targets: (...), int64, such as (B, L, V) and (B, L)  ->  (). The number of
/// torch.nn.CrossEntropyLoss, whose logits are (B, V, L); NaN, as there, where nothing counts.
/// Errors: c10::ValueError for other shapes, no tokens to choose among and an e out of range,
/// c10::TypeError for other types, c10::IndexError for a target out of [0, V).
/// Source: Szegedy et al. 2016, 7; "Attention Is All You Need", 5.4.
at::Tensor token_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                               const TokenCrossEntropyFuncOptions& options = {});

}  // namespace posenc::functional
