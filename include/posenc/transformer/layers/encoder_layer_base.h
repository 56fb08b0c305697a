#pragma once

#include "posenc/export.h"
#include "posenc/transformer/functional/attention_mask.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// What a stack gives to layers whose attention has terms of relative positions, or that have
/// inputs of their own.
struct StackPositions {
  at::Tensor table;                 ///< the rows of relative positions of the stack
  at::Tensor segments;              ///< the segment of each token, integers (B, L), or undefined
  at::Tensor per_layer_input = {};  ///< the layer's, (B, L, P), or undefined
};

/// What a TransformerEncoder needs of a layer: TransformerEncoderLayer, BottleneckEncoderLayer,
/// ConformerEncoderLayer.
class EncoderLayerBase {
 public:
  virtual ~EncoderLayerBase() = default;

  /// The options given to the constructor.
  virtual const TransformerLayerOptions& layer_options() const = 0;
  /// Draws new initial weights.
  virtual void reset_parameters() = 0;

 private:
  friend class TransformerEncoderImpl;

  // The layer's output, with a mask that includes the window. Stores the attention weights unless
  // `weights` is null.
  virtual at::Tensor run(const at::Tensor& x, const StackPositions& relative,
                         const AttentionMask& mask, const at::Tensor& position_ids,
                         at::Tensor* weights) = 0;
};

}  // namespace posenc
