#pragma once

#include <optional>

#include "inference/layers/block_layers.h"
#include "inference/layers/freeze_parts.h"

// How what mixes the rows of a sequence is frozen. The source of each kind has its steps, the class
// for all of them in a stack, and what they do with a batch.

namespace posenc::inference {

/// A stack whose blocks are being frozen.
class StackFreezer {
 public:
  StackFreezer(const TransformerEncoderImpl& encoder, BlockLayers& layers, WeightConverter& convert)
      : encoder(encoder), layers(layers), convert(convert) {}

  /// Goes on to a block of layer `number`, which has these options.
  void begin(const blocks::Block& block, const TransformerLayerOptions& layer, std::size_t number) {
    block_ = &block;
    number_ = static_cast<int64_t>(number);
    window_ = layer.window();
    takes_scale_ = block.post != nullptr;
  }

  const blocks::Block& block() const { return *block_; }
  int64_t layer_number() const { return number_; }
  std::optional<int64_t> window() const { return window_; }  ///< of its layer
  /// What a projection is multiplied by, which adds its result to x; null for none, or where a norm
  /// of the result takes it.
  const LayerScaleImpl* scale_of_weights() {
    takes_scale_ = true;
    return block_->post == nullptr ? block_->scale : nullptr;
  }
  bool takes_scale() const { return takes_scale_; }
  /// The rows of the stack's relative_embeddings.
  const at::Tensor& relative_table() {
    if (!relative_table_.defined()) relative_table_ = encoder.relative_embeddings.ptr()->forward();
    return relative_table_;
  }
  /// The frozen layers hold none of its parameters, but what is computed from them.
  void leave_out(const torch::nn::Module* module) {
    if (module == nullptr) return;
    for (const at::Tensor& parameter : module->parameters()) {
      convert.derived(parameter, 0);
      convert.leave_out(parameter);
    }
  }

  const TransformerEncoderImpl& encoder;
  BlockLayers& layers;
  WeightConverter& convert;

 private:
  const blocks::Block* block_ = nullptr;
  int64_t number_ = 0;
  std::optional<int64_t> window_;
  bool takes_scale_ = false;
  at::Tensor relative_table_;
};

/// The block of a step, without what all blocks have.
Block freeze_step(const blocks::Attention& own, StackFreezer& stack);
Block freeze_step(const ConvolutionalAttentionImpl& own, StackFreezer& stack);
Block freeze_step(const DisentangledAttentionImpl& own, StackFreezer& stack);
Block freeze_step(const TransformerXLAttentionImpl& own, StackFreezer& stack);
Block freeze_step(const ConformerConvolutionImpl& own, StackFreezer& stack);
Block freeze_step(const blocks::Fourier& own, StackFreezer& stack);
Block freeze_step(const blocks::Network& own, StackFreezer& stack);
Block freeze_step(const blocks::PerLayerInput& own, StackFreezer& stack);
/// The convolution beside a layer, which reads the input of the layers and adds to the output of
/// the first.
Block freeze_beside(const ConvolutionBesideImpl& own, StackFreezer& stack);

}  // namespace posenc::inference
