#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/pimpl.h>

#include <iosfwd>
#include <optional>
#include <utility>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/transformer/layers/patch_merging.h"
#include "posenc/transformer/layers/window_encoder_layer.h"

namespace posenc POSENC_EXPORT {

/// Options of WindowStage: layers of one width.
struct WindowStageOptions {
  /// Layers with these options.
  explicit WindowStageOptions(std::vector<WindowEncoderLayerOptions> layers)
      : layers_(std::move(layers)) {}

  /// The options of each layer, all with one d_model.
  TORCH_ARG(std::vector<WindowEncoderLayerOptions>, layers);
  /// The patch merging after them, of their d_model; none unless set.
  TORCH_ARG(std::optional<PatchMergingOptions>, downsample) = std::nullopt;

  POSENC_FIELDS(WindowStageOptions, layers_, downsample_);
};

/// Layers of one width on a map of tokens, and a patch merging after them.
///
/// x: (B, h, w, D)  ->  (B, h, w, D), or (B, ceil(h / 2), ceil(w / 2), 2 D) with a downsample.
///
/// ```cpp
/// const auto options = posenc::TransformerLayerOptions(32, 4).d_ff(64).norm_first(true);
/// posenc::WindowStage stage(posenc::WindowStageOptions(
///     {posenc::WindowEncoderLayerOptions(options, posenc::WindowOptions({4, 4}))}));
/// torch::Tensor map = stage->forward(torch::randn({2, 8, 6, 32}));  // (2, 8, 6, 32)
/// ```
///
/// Keys: `layers.0.*`, ... (WindowEncoderLayer), `downsample.*` (PatchMerging).
///
/// Errors: those of the layers; at construction, c10::ValueError for no layer and for widths that
/// differ.
///
/// Source: `SwinStage` in transformers 5.23.
class WindowStageImpl : public Cloneable<WindowStageImpl> {
 public:
  /// A module with the given options.
  explicit WindowStageImpl(WindowStageOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the map after the layers and the patch merging.
  torch::Tensor forward(const torch::Tensor& x);

  /// Layer i. Throws c10::ValueError if it is another module.
  WindowEncoderLayerImpl& layer(size_t i) const;

  WindowStageOptions options;             ///< the options given to the constructor
  torch::nn::ModuleList layers{nullptr};  ///< the layers
  PatchMerging downsample{nullptr};       ///< after them
};

TORCH_MODULE(WindowStage);

}  // namespace posenc
