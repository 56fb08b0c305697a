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
#include "posenc/positions/nn/layer_norm.h"
#include "posenc/transformer/layers/convolution_neck.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/transformer/layers/window_stage.h"

namespace posenc POSENC_EXPORT {

/// Options of WindowEncoder.
struct WindowEncoderOptions {
  /// An encoder of these stages.
  explicit WindowEncoderOptions(std::vector<WindowStageOptions> stages)
      : stages_(std::move(stages)) {}

  /// The options of each stage, which begins with the width that the one before it ends with.
  TORCH_ARG(std::vector<WindowStageOptions>, stages);
  /// Whether there is a norm after all stages.
  TORCH_ARG(bool, norm) = true;
  /// The neck after all stages, in place of a norm: SAM.
  TORCH_ARG(std::optional<ConvolutionNeckOptions>, neck) = std::nullopt;
  /// Whether a TransformerEncoderRecord gets the maps after each layer, as in SAM; otherwise those
  /// after each stage and the weights of its last layer, as in Swin.
  TORCH_ARG(bool, records_layers) = false;

 public:
  /// The layers of all stages.
  int64_t num_layers() const;
  /// The stage of the i-th of all layers, and its number in that.
  std::pair<int64_t, int64_t> locate_layer(int64_t i) const;
  /// The options of the first layer. Throws c10::ValueError without a stage, and for one without a
  /// layer.
  const TransformerLayerOptions& first_layer() const;
  /// The same of the last layer.
  const TransformerLayerOptions& last_layer() const;

  POSENC_FIELDS(WindowEncoderOptions, stages_, norm_, neck_, records_layers_);
};

/// An encoder of maps of tokens whose attention is in windows: stages of layers, after each of
/// which the map is half as large and twice as wide.
///
/// x: (B, h, w, D)  ->  (B, L, D') with the tokens of the last map row by row, or (B, C, h, w) with
/// a neck.
///
/// ```cpp
/// using Layer = posenc::WindowEncoderLayerOptions;
/// const auto options = posenc::TransformerLayerOptions(32, 4).d_ff(64).norm_first(true);
/// const posenc::WindowOptions windows({4, 4});
/// posenc::WindowEncoder encoder(posenc::WindowEncoderOptions({posenc::WindowStageOptions(
///     {Layer(options, windows), Layer(options, posenc::WindowOptions(windows).shift(2))})}));
/// torch::Tensor x = encoder->forward(torch::randn({2, 8, 6, 32}));  // (2, 48, 32)
/// ```
///
/// Keys: `stages.0.*`, ... (WindowStage), `norm.*` (LayerNorm), `neck.*` (ConvolutionNeck).
///
/// Errors: those of the layers; at construction, c10::ValueError for no stage, for widths that do
/// not follow from each other, and for a norm beside a neck.
///
/// Source: `SwinEncoder`, `Swinv2Encoder` and `SamVisionEncoder` in transformers 5.23.
class WindowEncoderImpl : public Cloneable<WindowEncoderImpl> {
 public:
  /// A module with the given options.
  explicit WindowEncoderImpl(WindowEncoderOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the tokens of the last map.
  torch::Tensor forward(const torch::Tensor& x);

  /// forward() that also records what `record` asks for: x and the maps after it as (B, L, D), with
  /// records_layers as (B, h, w, D); weights as (B * windows, H, N, N). All are before the norm.
  torch::Tensor forward_with(const torch::Tensor& x, TransformerEncoderRecord& record);

  /// Stage i. Throws c10::ValueError if it is another module.
  WindowStageImpl& stage(size_t i) const;

  WindowEncoderOptions options;           ///< the options given to the constructor
  torch::nn::ModuleList stages{nullptr};  ///< the stages
  LayerNorm norm{nullptr};                ///< with .norm(true)
  ConvolutionNeck neck{nullptr};          ///< with a neck
};

TORCH_MODULE(WindowEncoder);

}  // namespace posenc
