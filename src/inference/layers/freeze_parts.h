#pragma once

#include <torch/nn/modules/conv.h>

#include <optional>
#include <vector>

#include "inference/attention/attention.h"
#include "inference/attention/relative_bias.h"
#include "inference/linear/weight_converter.h"
#include "inference/rows/stream.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/layers/layer_scale.h"
#include "transformer/layers/blocks.h"

// What the layers of several kinds are frozen with.

namespace posenc::inference {

/// That of a linear layer, whose result is multiplied by `scale`, which may be null.
Projection linear(const torch::nn::LinearImpl& module, WeightConverter& convert,
                  const LayerScaleImpl* scale = nullptr);
/// That of a convolution over rows, as a product in float32 with the rows of its kernel side by
/// side: (out, K in).
Projection convolution(const torch::nn::Conv1dImpl& module, WeightConverter& convert);
/// That of a feed-forward network, whose result is multiplied by `scale`.
FeedForward network_of(const blocks::Network& network, WeightConverter& convert,
                       const LayerScaleImpl* scale = nullptr);

/// Projects with rows [first, first + count) of the projection of queries, keys and values.
Projection in_projection(const MultiheadAttentionImpl& attention, int64_t first, int64_t count,
                         WeightConverter& convert);

/// Gives each block of a pre-norm stack, which has the norm of its own input, the norm that follows
/// it, which is `last` after all; `entry` becomes that of the first.
void shift_norms(const std::vector<Norm*>& norms, Norm& entry, const Norm& last);

/// The factor of the scores.
float scale_of(const MultiheadAttentionImpl& attention);

/// The relative bias of a layer: that of the stack, or its own; each is in `all` once.
std::optional<std::size_t> relative_of(std::vector<RelativeBias>& all,
                                       const RelativePositionBias& shared,
                                       const RelativePositionBias& own);

}  // namespace posenc::inference
