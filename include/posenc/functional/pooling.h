#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// The mean of each sequence's real tokens: a sentence vector.
///
/// hidden: (B, L, D); attention_mask: bool or integer (B, L), nonzero for tokens; without it, all
/// rows are tokens  ->  (B, D). A sequence without tokens gives zeros. Masked rows do not count,
/// whatever they hold, and half types are summed in float32.
///
/// ```cpp
/// torch::Tensor hidden = torch::randn({2, 3, 32}), kept = torch::tensor({{1, 1, 1}, {1, 0, 0}});
/// torch::Tensor sentences = posenc::functional::mean_pool(hidden, kept);  // (2, 32)
/// ```
///
/// Errors: c10::TypeError for a hidden that is not floating-point and a mask that is;
/// c10::ValueError for shapes that do not match.
///
/// Source: sentence-transformers, `Pooling` with `pooling_mode_mean_tokens`.
at::Tensor mean_pool(const at::Tensor& hidden, const at::Tensor& attention_mask = {});

/// The row of each sequence's first token, which BERT-like models call `[CLS]`.
///
/// hidden: (B, L, D)  ->  (B, D).
///
/// Errors: c10::ValueError for another rank, and for sequences without tokens.
///
/// Source: sentence-transformers, `Pooling` with `pooling_mode_cls_token`.
at::Tensor first_pool(const at::Tensor& hidden);

/// x / max(|x|, eps) along the last axis: vectors of length 1, whose dot products are cosines.
///
/// x: (..., D)  ->  (..., D).
///
/// Errors: c10::TypeError for an x that is not floating-point; c10::ValueError for a scalar.
///
/// Source: torch.nn.functional.normalize(x, p=2, dim=-1), sentence-transformers' `Normalize`.
at::Tensor l2_normalize(const at::Tensor& x, double eps = 1e-12);

}  // namespace functional
}  // namespace posenc
