#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <iosfwd>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/nn/layer_norm.h"

namespace posenc POSENC_EXPORT {

/// Options of ConvolutionNeck.
struct ConvolutionNeckOptions {
  /// The options for maps of this width and this number of channels after it.
  ConvolutionNeckOptions(int64_t d_model, int64_t channels)
      : d_model_(d_model), channels_(channels) {}

  /// Width D of the map.
  TORCH_ARG(int64_t, d_model);
  /// Channels C of the result.
  TORCH_ARG(int64_t, channels);
  /// Added to the variance in the norms.
  TORCH_ARG(double, layer_norm_eps) = 1e-6;

  POSENC_FIELDS(ConvolutionNeckOptions, d_model_, channels_, layer_norm_eps_);
};

/// Two convolutions on a map, of 1 x 1 and 3 x 3 tokens without a bias, each before a norm of the
/// channels.
///
/// x: (B, h, w, D)  ->  (B, C, h, w).
///
/// ```cpp
/// posenc::ConvolutionNeck neck(posenc::ConvolutionNeckOptions(8, 4));
/// torch::Tensor map = neck->forward(torch::randn({2, 6, 5, 8}));  // (2, 4, 6, 5)
/// ```
///
/// Keys: `conv1.weight` (C, D, 1, 1), `layer_norm1.*`, `conv2.weight` (C, C, 3, 3), `layer_norm2.*`
/// (LayerNorm).
///
/// Errors: c10::ValueError for a map that is not (B, h, w, D).
///
/// Source: `SamVisionNeck` in transformers 5.23.
class ConvolutionNeckImpl : public Cloneable<ConvolutionNeckImpl> {
 public:
  /// A module with the given options.
  explicit ConvolutionNeckImpl(ConvolutionNeckOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the channels of the map.
  torch::Tensor forward(const torch::Tensor& x);

  ConvolutionNeckOptions options;    ///< the options given to the constructor
  torch::nn::Conv2d conv1{nullptr},  ///< (D) to (C), of one token
      conv2{nullptr};                ///< (C) to (C), of 3 x 3 tokens
  LayerNorm layer_norm1{nullptr},    ///< after conv1
      layer_norm2{nullptr};          ///< after conv2
};

TORCH_MODULE(ConvolutionNeck);

}  // namespace posenc
