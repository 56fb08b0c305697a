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

/// The row of each sequence's first real token, which differs from first_pool() with padding on the
/// left. A sequence without tokens gives its first row.
///
/// hidden: (B, L, D), attention_mask: (B, L)  ->  (B, D).
///
/// Errors: those of mean_pool(); c10::ValueError for L = 0.
///
/// Source: sentence-transformers 6.2, `Pooling` with `cls`.
at::Tensor first_token_pool(const at::Tensor& hidden, const at::Tensor& attention_mask = {});

/// The row of each sequence's last real token; zeros for a sequence without tokens.
///
/// hidden: (B, L, D), attention_mask: (B, L)  ->  (B, D).
///
/// Errors: those of first_token_pool().
///
/// Source: sentence-transformers 6.2, `Pooling` with `lasttoken`.
at::Tensor last_token_pool(const at::Tensor& hidden, const at::Tensor& attention_mask = {});

/// The largest value of each channel among the real tokens; -inf for a sequence without tokens.
///
/// hidden: (B, L, D), attention_mask: (B, L)  ->  (B, D).
///
/// Errors: those of first_token_pool().
///
/// Source: sentence-transformers 6.2, `Pooling` with `max`.
at::Tensor max_pool(const at::Tensor& hidden, const at::Tensor& attention_mask = {});

/// The sum of each sequence's real tokens divided by the square root of their number; zeros for a
/// sequence without tokens.
///
/// hidden: (B, L, D), attention_mask: (B, L)  ->  (B, D).
///
/// Errors: those of mean_pool().
///
/// Source: sentence-transformers 6.2, `Pooling` with `mean_sqrt_len_tokens`.
at::Tensor mean_sqrt_length_pool(const at::Tensor& hidden, const at::Tensor& attention_mask = {});

/// The mean of the real tokens with weights 1, 2, ..., counted from `first` (B), or from each
/// sequence's first real token; zeros for a sequence without tokens.
///
/// hidden: (B, L, D), attention_mask: (B, L)  ->  (B, D).
///
/// Errors: those of mean_pool(); c10::ValueError for `first` of another shape.
///
/// Source: sentence-transformers 6.2, `Pooling` with `weightedmean`.
at::Tensor weighted_mean_pool(const at::Tensor& hidden, const at::Tensor& attention_mask = {},
                              const at::Tensor& first = {});

/// Fewer vectors of one text: the first `num_protected_tokens` as they are, then the means of the
/// clusters of the other n, of which there are at most max(floor(n / pool_factor), 1). Clusters are
/// Ward's, of the distances 1 - x_i . x_j between 0 and 2, in the order of scipy's numbers; equal
/// distances may leave fewer.
///
/// tokens: (T, D)  ->  (T', D). Time and memory grow with n^2.
///
/// Errors: c10::TypeError for tokens that are not floating-point; c10::ValueError for another rank,
/// a factor below 1 and a negative number of protected tokens.
///
/// Source: sentence-transformers 6.2, `HierarchicalTokenPooling` without normalize_embeddings.
at::Tensor hierarchical_token_pool(const at::Tensor& tokens, double pool_factor,
                                   int64_t num_protected_tokens = 1);

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
