#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// The frequencies of PoPE, one for each of `dim` = D channels: base^(-j / D)  ->  (D), float32.
///
/// Errors: c10::ValueError for a dim that is not positive, or a base that is not positive and
/// finite.
at::Tensor polar_frequencies(int64_t dim, double base = 10000.0);

/// The angles of PoPE, position times frequency, in the dtype of `inv_freq` (D).
///
/// position_ids: integers, (L) or (B, L)  ->  (L, D) or (B, L, D), on its device.
///
/// Errors: c10::ValueError for a wrong shape, and a position that is negative or not below 2^31;
/// c10::TypeError for positions that are not integers, and frequencies that are not floating-point.
at::Tensor polar_angles(const at::Tensor& position_ids, const at::Tensor& inv_freq);

/// PoPE, polar coordinates in place of a rotation: the content of a channel is a magnitude, its
/// position an angle a, so that scores do not confuse the two:
///
///     y = [softplus(x) cos(a), softplus(x) sin(a)]
///
/// x: (H, L, D) or (B, H, L, D), angles: (L, D), or broadcastable to x  ->  (..., L, 2 D), in x's
/// dtype; differentiable with regard to both. Computed in float32 and rounded once. The angles of
/// keys have a learned bias (PolarEmbedding). A score is a sum over twice as many channels as q
/// has: x-transformers divides it by sqrt(2 D).
///
/// Errors: c10::ValueError for a wrong rank and angles that do not broadcast to x; c10::TypeError
/// for tensors that are not floating-point.
///
/// Source: `apply_polar_pos_emb` in x-transformers 2.31.10; arXiv:2509.10534.
at::Tensor polar_embedding(const at::Tensor& x, const at::Tensor& angles);

}  // namespace functional
}  // namespace posenc
