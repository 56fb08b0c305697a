#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "inference/freeze/option_values.h"
#include "inference/layers/torch_fields.h"
#include "posenc/positions/nn/audio_embeddings.h"
#include "posenc/positions/nn/document_position_bias.h"
#include "posenc/positions/nn/encoder_embeddings.h"
#include "posenc/positions/nn/vision_embeddings.h"
#include "posenc/transformer/layers/window_encoder.h"
#include "posenc/transformer/output_projection.h"
#include "posenc/transformer/transformer.h"

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

/// All classes with options that a freezable stack or Transformer holds; lint compares them, and
/// those of models/options/holders.h, with the headers.
#define POSENC_PARTS(Impl, ...) Impl,
using OptionHolders = ModuleClasses<
#include "inference/layers/module_parts.inc"
    ConvolutionNeckImpl, DocumentPositionBiasImpl, EncoderEmbeddingsImpl, OutputProjectionImpl,
    PatchProjectionImpl, PositionalEncodingImpl, RotaryEmbeddingImpl, TokenAndPositionEmbeddingImpl,
    TransformerDecoderImpl, TransformerEncoderImpl, TransformerImpl, VisionEmbeddingsImpl,
    WindowEncoderImpl, WindowStageImpl, torch::nn::Conv2dImpl, torch::nn::EmbeddingImpl>;
#undef POSENC_PARTS

/// What decides the results of a module beside its tensors: of an OutputProjection, which weight it
/// uses, since it may be that of another module.
template <typename Impl>
const auto& options_of(const Impl& module) {
  return module.options;
}
inline const c10::TensorImpl* options_of(const OutputProjectionImpl& module) {
  return module.effective_weight().unsafeGetTensorImpl();
}

template <typename Impl>
class CopyOf : public OptionsCopy {
 public:
  explicit CopyOf(const Impl& module) : options_(options_of(module)) {}

  bool differs_from(const torch::nn::Module& module, std::string& where) const override {
    const auto* const other = module.as<Impl>();
    return other == nullptr ||
           fields::differ(options_, options_of(*other), fields::Which::EvalMode, &where);
  }

 private:
  std::decay_t<decltype(options_of(std::declval<const Impl&>()))> options_;
};

/// A copy of the options of a module of one of the classes of Holders; null for another.
template <typename Holders>
std::shared_ptr<const OptionsCopy> copy_of(const torch::nn::Module& module) {
  std::shared_ptr<const OptionsCopy> copy;
  Holders::visit(module, [&](const auto& own) {
    copy = std::make_shared<CopyOf<std::decay_t<decltype(own)>>>(own);
  });
  return copy;
}

}  // namespace posenc
