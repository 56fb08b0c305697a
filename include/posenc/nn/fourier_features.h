#pragma once

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "posenc/core/cloneable.h"
#include "posenc/functional/fourier_features.h"

namespace posenc {

using FourierFeaturesOptions = functional::FourierFeaturesFuncOptions;

/// NeRF's encoding of points: [x, sin(2^0 x), cos(2^0 x), sin(2^1 x), cos(2^1 x), ...].
///
/// x: (..., C), real  ->  (..., options.out_channels()) = (..., C + 2 C multires), in x's dtype, on
/// its device. No keys: nothing is stored.
/// Errors: functional::fourier_features(), options when the module is made.
/// Source: `Embedder` (yenchenlin/nerf-pytorch, run_nerf_helpers.py); preset `nerf`.
class FourierFeaturesImpl : public Cloneable<FourierFeaturesImpl> {
 public:
  FourierFeaturesImpl(int64_t channels, int64_t multires)
      : FourierFeaturesImpl(FourierFeaturesOptions(channels, multires)) {}
  explicit FourierFeaturesImpl(FourierFeaturesOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& x);

  FourierFeaturesOptions options;
};

TORCH_MODULE(FourierFeatures);

}  // namespace posenc
