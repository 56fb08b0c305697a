#pragma once

#include "inference/layers/mixers.h"
#include "inference/linear/weight_converter.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "transformer/layers/blocks.h"

namespace posenc::inference {

/// Makes the frozen blocks of the layers of a stack; each mixer is added to those of its kind.
class BlockFreezer {
 public:
  BlockFreezer(const TransformerEncoderImpl& encoder, BlockLayers& layers,
               WeightConverter& convert);

  /// A block of a layer with these options. In a pre-norm stack the norm of its own input is in
  /// `after`, and the one after the sum in `in_place`.
  Block operator()(const blocks::Block& block, const TransformerLayerOptions& layer);
  /// The convolution beside a layer.
  Block beside(const ConvolutionBesideImpl& beside);

 private:
  // Each without what all blocks have: norms, and a factor of what is added.
  Block block_with(const blocks::Attention& own, const blocks::Block& block,
                   const TransformerLayerOptions& layer);
  Block block_with(const blocks::Disentangled& own, const blocks::Block& block,
                   const TransformerLayerOptions& layer);
  Block block_with(const blocks::TransformerXL& own, const blocks::Block& block,
                   const TransformerLayerOptions& layer);
  Block block_with(const blocks::Convolutional& own, const blocks::Block& block,
                   const TransformerLayerOptions& layer);
  Block block_with(const blocks::Fourier& own, const blocks::Block& block,
                   const TransformerLayerOptions& layer);
  Block block_with(const blocks::Convolution& own, const blocks::Block& block,
                   const TransformerLayerOptions& layer);
  Block block_with(const blocks::Network& own, const blocks::Block& block,
                   const TransformerLayerOptions& layer);
  void leave_out(const torch::nn::Module* module);

  const TransformerEncoderImpl& encoder_;
  BlockLayers& layers_;
  WeightConverter& convert_;
  AttentionMixers& attentions_;
  FourierMixers& fourier_;
  ConformerConvolutionMixers& convolutions_;
  DisentangledMixers* disentangled_ = nullptr;
  TransformerXLMixers* transformer_xl_ = nullptr;
  at::Tensor table_;  // the rows of relative positions of a DisentangledAttention
};

}  // namespace posenc::inference
