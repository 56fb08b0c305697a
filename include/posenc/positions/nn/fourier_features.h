#pragma once

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/functional/fourier_features.h"

namespace posenc POSENC_EXPORT {

/// Options of FourierFeatures.
using FourierFeaturesOptions = functional::FourierFeaturesFuncOptions;

/// NeRF's encoding of points: [x, sin(2^0 x), cos(2^0 x), sin(2^1 x), cos(2^1 x), ...].
///
/// x: (..., C), floating-point  ->  (..., options.out_channels()) = (..., C + 2 C multires), in x's
/// dtype on its device. The module has no parameters and no buffers.
///
/// ```cpp
/// posenc::FourierFeatures features(/*channels=*/3, /*multires=*/10);
/// torch::Tensor x = features->forward(torch::rand({1024, 3}));  // (1024, 63)
/// ```
///
/// Errors: those of functional::fourier_features(); options are checked at construction.
///
/// Source: `Embedder` (yenchenlin/nerf-pytorch, run_nerf_helpers.py); preset `nerf`.
class FourierFeaturesImpl : public Cloneable<FourierFeaturesImpl> {
 public:
  /// A module with the default options.
  FourierFeaturesImpl(int64_t channels, int64_t multires)
      : FourierFeaturesImpl(FourierFeaturesOptions(channels, multires)) {}
  /// A module with the given options.
  explicit FourierFeaturesImpl(FourierFeaturesOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// Returns the features of the points `x`.
  torch::Tensor forward(const torch::Tensor& x);

  FourierFeaturesOptions options;  ///< the options given to the constructor
};

TORCH_MODULE(FourierFeatures);

}  // namespace posenc
