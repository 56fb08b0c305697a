#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/functional/polar_embedding.h"
#include "posenc/positions/functional/rotary.h"

namespace posenc POSENC_EXPORT {

/// Options of PolarEmbedding.
struct PolarEmbeddingOptions {
  /// For heads of `dim` channels, of which the keys have `heads`.
  PolarEmbeddingOptions(int64_t dim, int64_t heads) : dim_(dim), heads_(heads) {}

  /// Channels of a head D.
  TORCH_ARG(int64_t, dim);
  /// Heads of the keys H, each with a bias for every channel.
  TORCH_ARG(int64_t, heads);
  /// The base of the frequencies.
  TORCH_ARG(double, base) = 10000.0;
  /// Draws the bias from the uniform distribution on [-2 pi, 0] instead of zeros.
  TORCH_ARG(bool, bias_uniform_init) = false;

  POSENC_FIELDS(PolarEmbeddingOptions, dim_, heads_, base_, bias_uniform_init_);
};

/// PoPE, polar coordinate position embedding: each channel of a query or key becomes a point whose
/// distance from the origin is the softplus of the channel, and whose angle is the position times
/// the channel's frequency f_j = base^(-j / D), for keys plus a learned bias b of head and channel:
///
///     q' = softplus(q) [cos(p f), sin(p f)],  k' = softplus(k) [cos(p f + b), sin(p f + b)]
///
/// A score is then the sum of softplus(q_j) softplus(k_j) cos((p_q - p_k) f_j - b_j): what a token
/// is does not move its angle, as it does in a rotary embedding.
///
/// q: (B, Hq, L, D), k: (B, H, L, D), or both without B  ->  (B, Hq, L, 2 D) and (B, H, L, 2 D). An
/// attention's scale is that of 2 D channels.
///
/// ```cpp
/// posenc::PolarEmbedding polar(/*dim=*/32, /*heads=*/4);
/// auto q = torch::randn({2, 4, 10, 32}), k = torch::randn({2, 4, 10, 32});
/// auto [polar_q, polar_k] = polar->forward(q, k);  // (2, 4, 10, 64) each
/// auto out = at::scaled_dot_product_attention(polar_q, polar_k, torch::randn({2, 4, 10, 32}));
/// ```
///
/// Keys: `learned_bias` (H, 1, D), clamped to [-2 pi, 0] where it is used; buffer `inv_freq` (D).
/// to(dtype) rounds the frequencies, as in Python: keep the module in float32.
///
/// Errors: those of functional::polar_embedding(); c10::ValueError at construction for dim, heads
/// and base that are not positive, and in forward() for keys with another number of heads,
/// positions that do not fit, and position_ids beside an offset.
///
/// Source: x-transformers 2.31.10 `PolarEmbedding`, whose bias_uniform_init raises an error there;
/// arXiv:2509.10534.
class PolarEmbeddingImpl : public Cloneable<PolarEmbeddingImpl> {
 public:
  /// A module with the default options.
  PolarEmbeddingImpl(int64_t dim, int64_t heads)
      : PolarEmbeddingImpl(PolarEmbeddingOptions(dim, heads)) {}
  /// A module with the given options.
  explicit PolarEmbeddingImpl(PolarEmbeddingOptions options_);

  void reset() override;
  /// Sets the bias to zeros, or draws it.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns q and k in polar coordinates; either may be undefined. `offset` is the position of the
  /// first row; `position_ids` (L) or (B, L) give explicit positions instead.
  functional::QueryKey forward(const torch::Tensor& q, const torch::Tensor& k, int64_t offset = 0,
                               const torch::Tensor& position_ids = {});

  PolarEmbeddingOptions options;  ///< the options given to the constructor
  torch::Tensor learned_bias;     ///< (H, 1, D)
  torch::Tensor inv_freq;         ///< (D)

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(int64_t{0})},
                                  {3, torch::nn::AnyValue(torch::Tensor())})
};

TORCH_MODULE(PolarEmbedding);

}  // namespace posenc
