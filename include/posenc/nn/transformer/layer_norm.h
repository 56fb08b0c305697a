#pragma once

#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"

namespace posenc {

struct LayerNormOptions {
  explicit LayerNormOptions(int64_t d_model) : d_model_(d_model) {}

  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(bool, bias) = true;
};

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last axis; torch::nn::LayerNorm with
/// PyTorch's switch for the bias.
///
/// x: (..., D)  ->  (..., D). Keys: `weight` (ones), `bias` (zeros). Source: torch.nn.LayerNorm.
class LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  explicit LayerNormImpl(int64_t d_model) : LayerNormImpl(LayerNormOptions(d_model)) {}
  explicit LayerNormImpl(LayerNormOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& x);

  LayerNormOptions options;
  torch::Tensor weight;
  torch::Tensor bias;  ///< undefined with bias(false)
};

TORCH_MODULE(LayerNorm);

}  // namespace posenc
