#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>

#include "models/option_fields.h"
#include "posenc/models/output_projection.h"

namespace posenc {

template <typename... Impls>
struct ModuleClasses {
  /// Calls visit(own), where `own` is the module as an object of its class; returns false for one
  /// of another class.
  template <typename Module, typename Visit>
  static bool visit(Module& module, Visit&& visit) {
    const auto visit_own = [&](auto* own) {
      if (own != nullptr) visit(*own);
      return own != nullptr;
    };
    return (visit_own(module.template as<Impls>()) || ...);
  }
};

/// All classes with options that a freezable model holds; lint compares them with the headers.
using OptionHolders = ModuleClasses<
    AttentionPoolingImpl, BottleneckEncoderLayerImpl, BottleneckFeedForwardImpl, ClassifierImpl,
    ConformerConvolutionImpl, ConformerEncoderLayerImpl, ConformerFeedForwardImpl,
    ConvolutionBesideImpl, ConvolutionNeckImpl, ConvolutionalAttentionImpl,
    DisentangledAttentionImpl, DisentangledEncoderLayerImpl, DocumentPositionBiasImpl,
    EncoderEmbeddingsImpl, EncoderHeadImpl, EncoderImpl, GridPositionBiasImpl, LayerNormImpl,
    LayerScaleImpl, LearnedPositionEmbeddingImpl, MultiheadAttentionImpl, OutputProjectionImpl,
    PatchMergingImpl, PatchProjectionImpl, PositionalEncodingImpl, RelativeEmbeddingsImpl,
    RelativePositionBiasImpl, RotaryEmbeddingImpl, ShiftedAttentionImpl, ShiftedEncoderLayerImpl,
    ShiftedPositionsImpl, TokenAndPositionEmbeddingImpl, TransformerDecoderImpl,
    TransformerDecoderLayerImpl, TransformerEncoderImpl, TransformerEncoderLayerImpl,
    TransformerImpl, TransformerNormImpl, VisionEmbeddingsImpl, WindowAttentionImpl,
    WindowEncoderImpl, WindowEncoderLayerImpl, WindowStageImpl, torch::nn::BatchNorm1dImpl,
    torch::nn::Conv1dImpl, torch::nn::Conv2dImpl, torch::nn::EmbeddingImpl>;

/// What decides the results of a module beside its tensors: of an OutputProjection, which weight it
/// uses, since it may be that of another module.
template <typename Impl>
const auto& options_of(const Impl& module) {
  return module.options;
}
inline const c10::TensorImpl* options_of(const OutputProjectionImpl& module) {
  return module.effective_weight().unsafeGetTensorImpl();
}

}  // namespace posenc
