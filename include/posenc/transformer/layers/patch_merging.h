#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <iosfwd>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/nn/layer_norm.h"

namespace posenc POSENC_EXPORT {

/// Options of PatchMerging.
struct PatchMergingOptions {
  /// The options for maps of this width.
  explicit PatchMergingOptions(int64_t d_model) : d_model_(d_model) {}

  /// Width D of the map.
  TORCH_ARG(int64_t, d_model);
  /// Whether the norm is before the projection, of width 4 D, as in Swin; otherwise it is after it,
  /// of width 2 D, as in Swin v2.
  TORCH_ARG(bool, norm_first) = true;
  /// Added to the variance in the norm.
  TORCH_ARG(double, layer_norm_eps) = 1e-5;

  POSENC_FIELDS(PatchMergingOptions, d_model_, norm_first_, layer_norm_eps_);
};

/// Makes one token of each 2 x 2 tokens of a map: side by side, column by column, normalised and
/// projected. A map of odd sides gets zeros below and on the right.
///
/// x: (B, h, w, D)  ->  (B, ceil(h / 2), ceil(w / 2), 2 D).
///
/// ```cpp
/// posenc::PatchMerging merging(posenc::PatchMergingOptions(8));
/// torch::Tensor map = merging->forward(torch::randn({2, 6, 5, 8}));  // (2, 3, 3, 16)
/// ```
///
/// Keys: `reduction.weight` (2 D, 4 D), `norm.*` (LayerNorm).
///
/// Errors: c10::ValueError for a map that is not (B, h, w, D).
///
/// Source: `SwinPatchMerging` and `Swinv2PatchMerging` in transformers 5.23.
class PatchMergingImpl : public Cloneable<PatchMergingImpl> {
 public:
  /// A module with the given options.
  explicit PatchMergingImpl(PatchMergingOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the smaller map.
  torch::Tensor forward(const torch::Tensor& x);

  PatchMergingOptions options;           ///< the options given to the constructor
  LayerNorm norm{nullptr};               ///< the norm
  torch::nn::Linear reduction{nullptr};  ///< (4 D) to (2 D), without a bias
};

TORCH_MODULE(PatchMerging);

}  // namespace posenc
