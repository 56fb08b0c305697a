#pragma once

#include <optional>
#include <vector>

#include "inference/attention/attention.h"
#include "inference/layers/frozen_layers.h"
#include "posenc/transformer/layers/bottleneck_encoder_layer.h"

namespace posenc::inference {

/// A linear layer and the norm of its result, or of the sum that it is added to; none if the weight
/// is undefined.
struct NormedProjection {
  Projection projection;
  Norm norm;
  bool is_there = false;
};

/// A frozen BottleneckEncoderLayer.
struct BottleneckLayer {
  HeadSizes sizes;
  Scoring scoring;
  std::optional<int64_t> window;   ///< of TransformerLayerOptions
  NormedProjection input, shared;  ///< (D) to (T); none: x itself
  bool values_are_inner;           ///< whether values are projected from the bottleneck
  Projection query, key, value;    ///< (T, .)
  NormedProjection attention;      ///< of the attention's output
  std::vector<FeedForward> networks;
  std::vector<Norm> network_norms;
  NormedProjection output;  ///< (T) to (D); none: the last network's output is the layer's
};

/// The layers of MobileBERT, row by row but for the attention.
class BottleneckLayers : public FrozenLayers {
 public:
  BottleneckLayers(const TransformerEncoderImpl& encoder, WeightConverter& convert);

  at::Tensor run(const at::Tensor& rows, const Packing& packing, const ScoreMask& mask,
                 const LayerInputs& inputs, std::vector<at::Tensor>* outputs) const override;

 private:
  std::vector<BottleneckLayer> layers_;
  int64_t width_, inner_width_;
  Norm last_;  // after all layers
};

}  // namespace posenc::inference
