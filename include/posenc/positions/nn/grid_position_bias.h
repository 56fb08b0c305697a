#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/relative/window.h"

namespace posenc POSENC_EXPORT {

/// Options of GridPositionBias.
struct GridPositionBiasOptions {
  /// A table for a grid of patches and a number of heads H.
  GridPositionBiasOptions(relative::Grid grid, int64_t num_heads)
      : grid_(grid), num_heads_(num_heads) {}

  /// Rows and columns of the patches that the table is for.
  TORCH_ARG(relative::Grid, grid);
  /// Number of heads H.
  TORCH_ARG(int64_t, num_heads);

  POSENC_FIELDS(GridPositionBiasOptions, grid_, num_heads_);
};

/// A learned number for each head and for each difference of rows and columns of two patches of an
/// image, which is added to the scores of attention; three more are for a class token before the
/// patches: towards a patch, from one, and for itself.
///
///     bias(h, i, j) = table(index(i, j), h)
///
/// For a grid of another size the table is resized: relative::Resize::BilinearTransposed.
///
/// ```cpp
/// posenc::GridPositionBias bias(posenc::relative::Grid{14, 14}, /*num_heads=*/12);
/// torch::Tensor added = bias->forward();  // (1, 12, 197, 197)
/// auto mask = posenc::AttentionMask::additive(added);
/// ```
///
/// Initialised with zeros, as in transformers.
///
/// Keys: `weight` ((2 height - 1) (2 width - 1) + 3, H), which is `relative_position_bias_table` in
/// BEiT.
///
/// Errors: c10::ValueError at construction for no heads, and for a grid that is not positive, there
/// and in forward().
///
/// Source: transformers 5.23, `BeitRelativePositionBias`.
class GridPositionBiasImpl : public Cloneable<GridPositionBiasImpl> {
 public:
  /// A module for a grid and a number of heads.
  GridPositionBiasImpl(relative::Grid grid, int64_t num_heads)
      : GridPositionBiasImpl(GridPositionBiasOptions(grid, num_heads)) {}
  /// A module with the given options.
  explicit GridPositionBiasImpl(GridPositionBiasOptions options_);
  void reset() override;
  /// Fills the weight with zeros.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the bias (1, H, 1 + N, 1 + N) of a class token and the N patches of `grid`, the
  /// table's own unless given.
  torch::Tensor forward(std::optional<relative::Grid> grid = std::nullopt);

  GridPositionBiasOptions options;  ///< the options given to the constructor
  torch::Tensor weight;             ///< ((2 height - 1) (2 width - 1) + 3, H)

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS(
      {0, torch::nn::AnyValue(std::optional<relative::Grid>(std::nullopt))})
};

TORCH_MODULE(GridPositionBias);

}  // namespace posenc
