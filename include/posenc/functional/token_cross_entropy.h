#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// Options of token_cross_entropy().
struct TokenCrossEntropyFuncOptions {
  /// The share e of the target distribution that is spread evenly over all V tokens, in [0, 1].
  TORCH_ARG(double, label_smoothing) = 0.0;
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
/// targets are ignored.
///
/// ```cpp
/// torch::Tensor logits = torch::randn({2, 3, 100}, torch::requires_grad());
/// torch::Tensor targets = torch::tensor({{5, 6, 7}, {8, 9, 0}});
/// auto options = posenc::functional::TokenCrossEntropyFuncOptions().ignore_index(0);
/// posenc::functional::token_cross_entropy(logits, targets, options).backward();
/// ```
///
/// Errors: c10::ValueError for wrong shapes, V = 0 and a label_smoothing out of range;
/// c10::TypeError for wrong dtypes; c10::IndexError for a target outside [0, V).
///
/// Source: Szegedy et al. 2016, 7; "Attention Is All You Need", 5.4.
at::Tensor token_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                               const TokenCrossEntropyFuncOptions& options = {});

}  // namespace functional
}  // namespace posenc
