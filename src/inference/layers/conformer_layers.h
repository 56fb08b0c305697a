#pragma once

#include <optional>
#include <vector>

#include "inference/attention/distance_keys.h"
#include "inference/attention/rotation.h"
#include "inference/layers/frozen_layers.h"
#include "inference/layers/transformer_xl_layers.h"
#include "posenc/transformer/layers/conformer_encoder_layer.h"

namespace posenc::inference {

/// A frozen ConformerConvolution, whose batch norm is part of its depthwise convolution.
struct FrozenConformerConvolution {
  Norm norm;
  Projection pointwise1, pointwise2;
  at::Tensor depthwise, bias;  ///< (K, D), (D)
  Activation activation;       ///< after them
};

/// A frozen ConformerEncoderLayer. Queries and keys have a projection of their own where their
/// input is rotated.
struct ConformerLayer {
  Norm before_ffn1, before_attention, before_ffn2, last;
  FeedForward ffn1, ffn2;
  HeadSizes sizes;
  float score_scale;
  Projection in_proj, values, out_proj;
  std::optional<TransformerXLParts> parts;  ///< of a TransformerXLAttention
  std::optional<size_t> rotation;           ///< of the stack's rotations
  FrozenConformerConvolution conv;
};

/// The layers of a conformer.
class ConformerLayers : public FrozenLayers {
 public:
  ConformerLayers(const TransformerEncoderImpl& encoder, WeightConverter& convert);

  at::Tensor run(const at::Tensor& rows, const Packing& packing, const ScoreMask& mask,
                 const LayerInputs& inputs, std::vector<at::Tensor>* outputs) const override;

  std::vector<ConformerLayer> layers;
  std::vector<Rotation> rotations;
  std::optional<DistanceKeys> distances;  ///< of TransformerXLAttentions
  int64_t width;
  Norm half;  ///< x / 2
  Norm last;  ///< after all layers
};

}  // namespace posenc::inference
