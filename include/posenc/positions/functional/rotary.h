#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "posenc/export.h"
#include "posenc/positions/rotary/rotary.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// Options of rotary().
struct RotaryFuncOptions {
  /// The position of the first token. Cannot be combined with position_ids.
  TORCH_ARG(int64_t, offset) = 0;
  /// Explicit positions, as in rotary_cos_sin(): (L), (B, L), (planes, B, L), or of patches
  /// (N, planes) or (B, N, planes); packed sequences: (T).
  TORCH_ARG(at::Tensor, position_ids) = {};
  /// The order of the axes of q and k; unless set, that of the mirrored system
  /// (RotaryOptions::head_axis).
  TORCH_ARG(std::optional<rotary::HeadAxis>, head_axis) = std::nullopt;
  /// Number of leading tokens that have no position and are not rotated: class and register tokens
  /// of vision models.
  TORCH_ARG(int64_t, prefix_tokens) = 0;
  /// Rotates by the negative angles, and puts channels that the pairing reorders back: the inverse.
  /// Where cos and sin have a factor (YaRN, LongRoPE), the result is multiplied by its square. Not
  /// with Planes::Doubled.
  TORCH_ARG(bool, inverse) = false;
};

/// Queries and keys.
using QueryKey = std::tuple<at::Tensor, at::Tensor>;

/// Rotates q and k by their positions.
///
/// q: (B, H, L, Dh), k: (B, Hkv, L, Dh) or, with HeadAxis::AfterLength, (B, L, H, Dh) and
/// (B, L, Hkv, Dh); B may be left out  ->  as q and k. Either may be undefined. Both have the same
/// positions, and so the same length.
///
/// ```cpp
/// namespace F = posenc::functional;
/// auto options = posenc::rotary_preset("llama", 64);
/// auto q = torch::randn({2, 8, 16, 64}), k = torch::randn({2, 2, 16, 64});
/// auto [q1, k1] = F::rotary(q, k, options);                                          // prompt
/// auto [q2, k2] = F::rotary(q, k, options, F::RotaryFuncOptions().offset(16));  // the next tokens
/// ```
///
/// Errors: c10::ValueError for a wrong rank, width or shape, a negative offset, position_ids
/// combined with an offset, and options that validate() rejects; c10::TypeError for q and k that
/// are not floating-point or differ in dtype.
QueryKey rotary(const at::Tensor& q, const at::Tensor& k, const RotaryOptions& options,
                const RotaryFuncOptions& func_options = {});

/// rotary() with given cos and sin, from rotary_cos_sin() or from the model itself: (L, W), (B, L,
/// W), or where each head has its own, as with learned frequencies, (B, H, L, W), B or H
/// possibly 1. With position_ids, (L) or (B, L), they are a cache (P, W) with a row for every
/// position. The options describe their layout and the arithmetic; `func_options` must have no
/// offset.
///
/// Errors: those of rotary(); c10::ValueError for cos and sin of another shape; c10::IndexError for
/// a position without a row.
QueryKey rotary(const at::Tensor& q, const at::Tensor& k, const RotaryCosSin& table,
                const RotaryOptions& options, const RotaryFuncOptions& func_options = {});

/// rotary() in place.
///
/// Errors: those of rotary(); c10::ValueError if a gradient would be recorded; c10::TypeError with
/// Arithmetic::Widened, whose result has another dtype.
void rotary_(const at::Tensor& q, const at::Tensor& k, const RotaryCosSin& table,
             const RotaryOptions& options, const RotaryFuncOptions& func_options = {});

/// rotary() into existing tensors, which may be q and k themselves but not overlap them otherwise.
///
/// Errors: those of rotary_(); c10::TypeError and c10::ValueError for a wrong dtype or shape.
void rotary_out(const at::Tensor& q_out, const at::Tensor& k_out, const at::Tensor& q,
                const at::Tensor& k, const RotaryCosSin& table, const RotaryOptions& options,
                const RotaryFuncOptions& func_options = {});

/// Reorders the rows of a query or key projection that was trained with the pairing `from`, so that
/// rotating its output with the pairing `to` gives the same scores: Meta's weights are Adjacent,
/// Hugging Face's Halves. KeySource::adjacent_to_halves() does the same while a file is loaded.
///
/// weight: (heads * Dh, in) or a bias (heads * Dh)  ->  the same shape. `rotary_dim`: how many of a
/// head's channels rotate, the first ones; 0: all.
///
/// Errors: c10::ValueError for rows that are not those of `heads` heads, an odd number of rotating
/// channels, and pairings other than Halves and Adjacent.
at::Tensor convert_rotary_weight(const at::Tensor& weight, int64_t heads, rotary::Pairing from,
                                 rotary::Pairing to, int64_t rotary_dim = 0);

}  // namespace functional
}  // namespace posenc
