#pragma once

#include <vector>

#include "inference/attention/distance_keys.h"
#include "inference/layers/frozen_layers.h"
#include "inference/layers/relative_run.h"
#include "posenc/transformer/layers/shifted_encoder_layer.h"

namespace posenc::inference {

/// What a frozen ShiftedAttention adds to its queries, which have content_bias already, and the
/// scaled vectors of segments.
struct ShiftedParts {
  ShiftedParts(const ShiftedAttentionImpl& attention, WeightConverter& convert);

  at::Tensor key_bias;      ///< (H, Dh), beside the keys of distances
  at::Tensor segment_bias;  ///< (H, Dh), undefined without segments
  at::Tensor segment_keys;  ///< (H, 2, Dh), the same
};

/// The projection of a ShiftedAttention to queries with their content_bias, keys and values.
Projection shifted_in_proj(const ShiftedAttentionImpl& attention, WeightConverter& convert);

/// The segment of each row of a packing, kLong; undefined for undefined segments (B, L).
at::Tensor packed_segments(const at::Tensor& segments, const Packing& packing);

/// The positions of a layer whose keys reach at least as far as a batch.
PositionHeads shifted_positions(const ShiftedParts& parts, const at::Tensor& keys, int64_t reach,
                                bool bi_data, const at::Tensor& segments);

/// A frozen ShiftedEncoderLayer.
struct ShiftedLayer : RelativeLayer {
  ShiftedParts parts;
};

/// The layers of XLNet.
class ShiftedLayers : public FrozenLayers {
 public:
  ShiftedLayers(const TransformerEncoderImpl& encoder, WeightConverter& convert);

  at::Tensor run(const at::Tensor& rows, const Packing& packing, const ScoreMask& mask,
                 const LayerInputs& inputs, std::vector<at::Tensor>* outputs) const override;

 private:
  ShiftedOptions options_;
  std::vector<ShiftedLayer> layers_;
  DistanceKeys distances_;
  int64_t width_;
  Norm last_;  // after all layers
};

}  // namespace posenc::inference
