#pragma once

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/functional/sine_position_embedding_2d.h"

namespace posenc POSENC_EXPORT {

/// Options of SinePositionEmbedding2d.
using SinePositionEmbedding2dOptions = functional::SinePositionEmbedding2dFuncOptions;

/// The two-dimensional sinusoid of DETR and related models, which counts the cells that are not
/// padding. For the formula see functional::sine_position_embedding_2d().
///
/// mask: (B, H, W) bool, where TRUE IS PADDING  ->  (B, D, H, W) float32; or an image without
/// padding (B, C, H, W)  ->  (B, D, H, W) in its dtype. The result is on the input's device.
///
/// The module has no parameters and no buffers. Without padding it is bit-identical to the presets
/// `detr_2d` (with the same `normalize`), `deformable_detr_2d` (offset -0.5) and `dab_detr_2d`
/// (temperature 20, sinusoid::Frequency::PowerOfProduct). A row or column that is all padding has
/// coordinate 0, or offset / eps * scale. The encoding of an image is a view shared by the whole
/// batch: copy it before writing to it.
///
/// ```cpp
/// posenc::SinePositionEmbedding2d embedding(/*d_model=*/32);
/// torch::Tensor no_padding = torch::zeros({2, 20, 30}, torch::kBool);
/// torch::Tensor x = embedding->forward(no_padding);
/// ```
///
/// Errors: those of functional::sine_position_embedding_2d(); options are checked at construction.
///
/// Source: `PositionEmbeddingSine` (facebookresearch/detr), `DetrSinePositionEmbedding`,
/// `DeformableDetrSinePositionEmbedding`, `DabDetrSinePositionEmbedding` (transformers 5.23.0),
/// `SinePositionalEncoding` (mmdet 3.3.0).
class SinePositionEmbedding2dImpl : public Cloneable<SinePositionEmbedding2dImpl> {
 public:
  /// A module with the default options.
  explicit SinePositionEmbedding2dImpl(int64_t d_model)
      : SinePositionEmbedding2dImpl(SinePositionEmbedding2dOptions(d_model)) {}
  /// A module with the given options.
  explicit SinePositionEmbedding2dImpl(SinePositionEmbedding2dOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// Returns the encoding of the mask's, or the image's, cells.
  torch::Tensor forward(const torch::Tensor& mask);

  SinePositionEmbedding2dOptions options;  ///< the options given to the constructor
};

TORCH_MODULE(SinePositionEmbedding2d);

}  // namespace posenc
