#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// The convolution of a conformer: y = pointwise2(activation(batch_norm(depthwise(a sigmoid(b))))),
/// where a and b are the halves of pointwise1(norm(x)). Tokens see padding.
///
/// x: (B, L, D)  ->  (B, L, D).
///
/// ```cpp
/// const posenc::ConformerOptions options(/*conv_kernel_size=*/3);
/// posenc::ConformerConvolution conv(posenc::TransformerLayerOptions(32, 4).conformer(options));
/// torch::Tensor y = conv->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: `norm.*`, `pointwise1.weight` (2 D, D), `depthwise_weight` (D, K), `batch_norm.*`
/// (torch::nn::BatchNorm1d, with its buffers), `pointwise2.weight` (D, D).
///
/// Errors: c10::ValueError for options without a conformer, an even kernel and a sequence that is
/// not (B, L, D).
///
/// Source: `Wav2Vec2ConformerConvolutionModule` in transformers 5.23.
class ConformerConvolutionImpl : public Cloneable<ConformerConvolutionImpl> {
 public:
  /// A module with the options of a layer, whose conformer has to be set.
  explicit ConformerConvolutionImpl(TransformerLayerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns what is added to x.
  torch::Tensor forward(const torch::Tensor& x);

  TransformerLayerOptions options;             ///< the options given to the constructor
  TransformerNorm norm{nullptr};               ///< of x
  torch::nn::Linear pointwise1{nullptr},       ///< (D) to (2 D), without a bias
      pointwise2{nullptr};                     ///< (D) to (D), without a bias
  torch::Tensor depthwise_weight;              ///< (D, K)
  torch::nn::BatchNorm1d batch_norm{nullptr};  ///< of the channels
  torch::nn::Dropout dropout{nullptr};         ///< of the result
};

TORCH_MODULE(ConformerConvolution);

}  // namespace posenc
