#pragma once

#include <optional>
#include <vector>

#include "inference/layers/frozen_layers.h"
#include "inference/layers/relative_run.h"
#include "posenc/transformer/layers/disentangled_encoder_layer.h"

namespace posenc::inference {

/// A frozen DisentangledEncoderLayer. Its rows of positions are computed once: they are the
/// products of the table with projections, and do not depend on the input.
struct DisentangledLayer : RelativeLayer {
  at::Tensor position_keys, position_queries;  ///< (H, R, Dh), or undefined
};

/// A frozen ConvolutionBeside.
struct FrozenConvolution {
  Projection projection;  ///< (D, K D), of K neighbouring rows side by side
  int64_t size;           ///< K
  Activation activation;
  Norm norm;
};

/// The layers of DeBERTa, row by row but for the attention.
class DisentangledLayers : public FrozenLayers {
 public:
  DisentangledLayers(const TransformerEncoderImpl& encoder, WeightConverter& convert);

  at::Tensor run(const at::Tensor& rows, const Packing& packing, const ScoreMask& mask,
                 const LayerInputs& inputs, std::vector<at::Tensor>* outputs) const override;

 private:
  std::vector<DisentangledLayer> layers_;
  std::optional<FrozenConvolution> convolution_;
  relative::Index index_;
  int64_t width_;
  Norm last_;  // after all layers
};

}  // namespace posenc::inference
