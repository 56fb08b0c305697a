#pragma once

#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Options of LayerNorm.
struct LayerNormOptions {
  /// The default options for width `d_model`.
  explicit LayerNormOptions(int64_t d_model) : d_model_(d_model) {}

  /// Width D of x.
  TORCH_ARG(int64_t, d_model);
  /// Added to the variance.
  TORCH_ARG(double, eps) = 1e-5;
  /// Whether there is a bias.
  TORCH_ARG(bool, bias) = true;

  POSENC_FIELDS(LayerNormOptions, d_model_, eps_, bias_);
};

/// Layer normalisation over the last axis: (x - mean) / sqrt(variance + eps) * weight + bias.
/// Unlike torch::nn::LayerNorm, and like PyTorch's, it has an option for the bias.
///
/// x: (..., D)  ->  (..., D).
///
/// ```cpp
/// posenc::LayerNorm norm(posenc::LayerNormOptions(32).eps(1e-6).bias(false));
/// torch::Tensor x = norm->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: `weight`, initialised to ones; `bias`, initialised to zeros.
///
/// Source: torch.nn.LayerNorm.
class LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  /// A module with the default options.
  explicit LayerNormImpl(int64_t d_model) : LayerNormImpl(LayerNormOptions(d_model)) {}
  /// A module with the given options.
  explicit LayerNormImpl(LayerNormOptions options_);

  void reset() override;
  /// Sets the weight to ones and the bias to zeros.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns x normalised.
  torch::Tensor forward(const torch::Tensor& x);

  LayerNormOptions options;  ///< the options given to the constructor
  torch::Tensor weight;      ///< (D)
  torch::Tensor bias;        ///< (D), undefined with bias(false)
};

TORCH_MODULE(LayerNorm);

}  // namespace posenc
