#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {
namespace relative POSENC_EXPORT {

/// The ways to compute ALiBi's slopes. They agree but for their rounding, and in the heads beyond a
/// power of two.
enum class Slopes {
  Bloom,         ///< powers of a float32 base; also Falcon's, which rounds them to bfloat16
  Mpt,           ///< 1 / 2^(bias_max k / n), n the next power of two, the odd ones first
  XTransformers  ///< powers in float64, rounded once
};

/// ALiBi in the layers of a stack: slope(h) times the distance of two tokens is subtracted from
/// their score in head h, on both sides of a query unless the layers are causal.
struct Alibi {
  Slopes slopes = Slopes::Bloom;  ///< how the slopes are computed
  double bias_max = 8.0;          ///< of Slopes::Mpt; positive
  /// Whether a distance counts the tokens only, and not the padding between them, as in BLOOM and
  /// Falcon; otherwise it is that of their places, as in MPT. They differ where padding is between
  /// tokens.
  bool counts_tokens = false;
  /// Multiplies the biases: Falcon's, which are scaled as the products of queries and keys are.
  double factor = 1.0;
  /// Whether slopes, and their products with the positions of keys, are rounded to bfloat16, so
  /// that a bias depends on the position of its key, and not on the distance alone: Falcon.
  bool bfloat16 = false;

  POSENC_FIELDS(Alibi, slopes, bias_max, counts_tokens, factor, bfloat16);
};

}  // namespace relative

/// The slopes of ALiBi, by which a key's bias decreases with its distance, one for each head.
///
/// Returns (heads), float32.
///
/// Errors: c10::ValueError for no heads, and for a bias_max that is not positive.
///
/// Source: `build_alibi_tensor` of BLOOM and Falcon, `build_mpt_alibi_tensor` of MPT in
/// transformers 5.23; `AlibiPositionalBias` of x-transformers 2.31.10.
at::Tensor alibi_slopes(int64_t heads, relative::Slopes kind = relative::Slopes::Bloom,
                        double bias_max = 8.0);
/// The same for a stack's ALiBi, times its factor.
at::Tensor alibi_slopes(int64_t heads, const relative::Alibi& alibi);

/// The positions of the keys that BLOOM and Falcon multiply by the slopes: the number of tokens
/// before each, so that padding shifts nothing; 0 for padding.
///
/// is_token: (B, K), bool or integers, nonzero for a token  ->  (B, K), int64
///
/// Errors: c10::TypeError for a mask that is real; c10::ValueError for another rank.
at::Tensor alibi_positions(const at::Tensor& is_token);

}  // namespace posenc
