#pragma once

#include <vector>

#include "inference/attention/distance_keys.h"
#include "inference/layers/frozen_layers.h"
#include "inference/layers/relative_run.h"
#include "posenc/transformer/layers/transformer_xl_encoder_layer.h"

namespace posenc::inference {

/// What a frozen TransformerXLAttention adds to its queries, which have content_bias already, and
/// the scaled vectors of segments.
struct TransformerXLParts {
  TransformerXLParts(const TransformerXLAttentionImpl& attention, WeightConverter& convert);

  at::Tensor key_bias;      ///< (H, Dh), beside the keys of distances
  at::Tensor segment_bias;  ///< (H, Dh), undefined without segments
  at::Tensor segment_keys;  ///< (H, 2, Dh), the same
};

/// The projection of a TransformerXLAttention to queries with their content_bias, keys and values.
Projection transformer_xl_in_proj(const TransformerXLAttentionImpl& attention,
                                  WeightConverter& convert);

/// The segment of each row of a packing, kLong; undefined for undefined segments (B, L).
at::Tensor packed_segments(const at::Tensor& segments, const Packing& packing);

/// The positions of a layer whose keys reach at least as far as a batch.
PositionHeads position_heads(const TransformerXLParts& parts, const at::Tensor& keys, int64_t reach,
                             bool bi_data, const at::Tensor& segments);

/// A frozen TransformerXLEncoderLayer.
struct TransformerXLLayer : RelativeLayer {
  TransformerXLParts parts;
};

/// The layers of XLNet.
class TransformerXLLayers : public FrozenLayers {
 public:
  TransformerXLLayers(const TransformerEncoderImpl& encoder, WeightConverter& convert);

  at::Tensor run(const at::Tensor& rows, const Packing& packing, const ScoreMask& mask,
                 const LayerInputs& inputs, std::vector<at::Tensor>* outputs) const override;

 private:
  TransformerXLOptions options_;
  std::vector<TransformerXLLayer> layers_;
  DistanceKeys distances_;
  int64_t width_;
  Norm last_;  // after all layers
};

}  // namespace posenc::inference
