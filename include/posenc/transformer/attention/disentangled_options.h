#pragma once

#include <torch/arg.h>

#include <cstdint>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/relative/index.h"
#include "posenc/transformer/functional/activation.h"

namespace posenc POSENC_EXPORT {

/// The disentangled attention of TransformerEncoderLayers, in the terms of transformers'
/// DebertaV2Config.
struct DisentangledOptions {
  /// The options of DeBERTa for distances up to this one.
  explicit DisentangledOptions(int64_t max_relative_positions)
      : max_relative_positions_(max_relative_positions) {}

  /// Half of the rows of the table.
  int64_t span() const {
    return position_buckets() > 0 ? position_buckets() : max_relative_positions();
  }
  /// How distances are rows of it.
  relative::Index index() const;

  /// The distance from which on keys share the last row of their side.
  TORCH_ARG(int64_t, max_relative_positions);
  /// Half of the rows of a table whose larger distances share rows on a logarithmic scale
  /// (relative::SignedLog); 0: each distance has a row of its own.
  TORCH_ARG(int64_t, position_buckets) = 0;
  /// Whether there is a table of relative positions; the two terms need it.
  TORCH_ARG(bool, relative_attention) = true;
  /// Whether queries are multiplied by the keys of their distances: `c2p`.
  TORCH_ARG(bool, content_to_position) = true;
  /// Whether keys are multiplied by the queries of their distances: `p2c`.
  TORCH_ARG(bool, position_to_content) = true;
  /// Whether the table is projected by the projections of queries and keys; false: by its own.
  TORCH_ARG(bool, share_att_key) = false;
  /// Whether its own projection to keys has a bias: DeBERTa v1 has none.
  TORCH_ARG(bool, position_key_bias) = true;
  /// Whether the table has a layer norm: `norm_rel_ebd`.
  TORCH_ARG(bool, norm_relative_embeddings) = false;
  /// Number of tokens that the convolution beside the first layer sees, odd; 0: there is none.
  TORCH_ARG(int64_t, conv_kernel_size) = 0;
  /// Its groups, which divide d_model.
  TORCH_ARG(int64_t, conv_groups) = 1;
  /// What follows it.
  TORCH_ARG(Activation, conv_act) = Activation::Tanh;

  POSENC_FIELDS(DisentangledOptions, max_relative_positions_, position_buckets_,
                relative_attention_, content_to_position_, position_to_content_, share_att_key_,
                position_key_bias_, norm_relative_embeddings_, conv_kernel_size_, conv_groups_,
                conv_act_);
};

}  // namespace posenc
