#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <utility>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/relative/index.h"

namespace posenc POSENC_EXPORT {

/// Options of RelativePositionBias.
struct RelativePositionBiasOptions {
  /// A table for an index and a number of heads H.
  RelativePositionBiasOptions(relative::Index index, int64_t num_heads)
      : index_(index), num_heads_(num_heads) {}

  /// How the table is indexed by the distance; not relative::Shift, which has no number of rows.
  TORCH_ARG(relative::Index, index);
  /// Number of heads H.
  TORCH_ARG(int64_t, num_heads);

  POSENC_FIELDS(RelativePositionBiasOptions, index_, num_heads_);
};

/// A learned number for each head and index of the distance of a key from a query, which is added
/// to the scores of attention:
///
///     bias(h, i, j) = weight(index(j - i), h)
///
/// ```cpp
/// posenc::RelativePositionBias bias(
///     posenc::RelativePositionBiasOptions(posenc::relative::Buckets{32, 128}, 12));
/// auto mask = posenc::AttentionMask::additive(bias->forward(10, 10));
/// ```
///
/// Initialised from N(0, 1), as torch.nn.Embedding.
///
/// Keys: `weight` (rows, H), which is `relative_attention_bias.weight` in T5 and MPNet,
/// `relative_position_bias_table` in Swin.
///
/// Errors: c10::ValueError at construction for no heads, and for an index whose members do not fit
/// each other; in forward() those of relative_position_bias().
///
/// Source: transformers 5.23, `T5Attention.compute_bias`.
class RelativePositionBiasImpl : public Cloneable<RelativePositionBiasImpl> {
 public:
  /// A module for an index and a number of heads.
  RelativePositionBiasImpl(relative::Index index, int64_t num_heads)
      : RelativePositionBiasImpl(RelativePositionBiasOptions(index, num_heads)) {}
  /// A module with the given options.
  explicit RelativePositionBiasImpl(RelativePositionBiasOptions options_);
  void reset() override;
  /// Draws the weight from N(0, 1).
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the bias (1, H, queries, keys); `offset` is the position of the first query, the
  /// number of keys before it.
  torch::Tensor forward(int64_t queries, int64_t keys, int64_t offset = 0);

  /// Returns the bias (B, H, Q, K) of tokens at any positions: queries (B, Q), keys (B, K), int64.
  torch::Tensor at_positions(const torch::Tensor& queries, const torch::Tensor& keys);

  RelativePositionBiasOptions options;  ///< the options given to the constructor
  torch::Tensor weight;                 ///< (rows, H)

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(int64_t{0})})
};

TORCH_MODULE(RelativePositionBias);

}  // namespace posenc
