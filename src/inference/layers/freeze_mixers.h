#pragma once

#include <optional>

#include "inference/layers/mixers.h"
#include "inference/linear/weight_converter.h"
#include "posenc/transformer/layers/conformer_encoder_layer.h"
#include "posenc/transformer/layers/transformer_encoder.h"

// The mixers of modules: each is added to those of its kind, of which its block is returned. The
// norm of the block is in `after`, in a pre-norm layer too.

namespace posenc::inference {

/// With Mixing::Attention or Mixing::Convolution.
Block attention_block(const TransformerEncoderLayerImpl& layer,
                      const TransformerEncoderImpl& encoder, AttentionMixers& all,
                      WeightConverter& convert);
/// `table`: the rows of relative positions of the stack.
Block disentangled_block(const TransformerEncoderLayerImpl& layer, const at::Tensor& table,
                         DisentangledMixers& all, WeightConverter& convert);
Block transformer_xl_block(const TransformerXLAttentionImpl& attention, TransformerXLMixers& all,
                           const TransformerNorm& norm, std::optional<int64_t> window,
                           WeightConverter& convert);
/// Of a MultiheadAttention, whose input may be rotated.
Block conformer_block(const ConformerEncoderLayerImpl& layer, AttentionMixers& all,
                      WeightConverter& convert);
Block conformer_convolution_block(const ConformerConvolutionImpl& conv,
                                  ConformerConvolutionMixers& all, WeightConverter& convert);
Block convolution_beside_block(const ConvolutionBesideImpl& beside, ConvolutionBesideMixers& all,
                               WeightConverter& convert);

/// A projection is multiplied by the scale of what a block adds, unless a `post` norm takes it.
inline LayerScale scale_without(const TransformerNorm& post, const LayerScale& scale) {
  return post ? LayerScale(nullptr) : scale;
}

}  // namespace posenc::inference
