#pragma once

#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Options of LayerScale.
struct LayerScaleOptions {
  /// The default options for width `d_model`.
  explicit LayerScaleOptions(int64_t d_model) : d_model_(d_model) {}

  /// Width D of x.
  TORCH_ARG(int64_t, d_model);
  /// The initial factor of every channel.
  TORCH_ARG(double, init) = 1.0;

  POSENC_FIELDS(LayerScaleOptions, d_model_);
  POSENC_TRAINING_FIELDS(init_);
};

/// Multiplies each channel by a factor that is trained: x * lambda1.
///
/// x: (..., D)  ->  (..., D).
///
/// ```cpp
/// posenc::LayerScale scale(posenc::LayerScaleOptions(/*d_model=*/8).init(0.1));
/// torch::Tensor y = scale->forward(torch::randn({2, 3, 8}));
/// ```
///
/// Keys: `lambda1` (D), initialised to `init`.
///
/// Source: `Dinov2LayerScale` in transformers 5.23.
class LayerScaleImpl : public Cloneable<LayerScaleImpl> {
 public:
  /// A module with the default options.
  explicit LayerScaleImpl(int64_t d_model) : LayerScaleImpl(LayerScaleOptions(d_model)) {}
  /// A module with the given options.
  explicit LayerScaleImpl(LayerScaleOptions options_);

  void reset() override;
  /// Sets all factors to `init`.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns x scaled.
  torch::Tensor forward(const torch::Tensor& x);

  LayerScaleOptions options;  ///< the options given to the constructor
  torch::Tensor lambda1;      ///< (D)
};

TORCH_MODULE(LayerScale);

}  // namespace posenc
