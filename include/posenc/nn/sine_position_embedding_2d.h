#pragma once

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "posenc/core/cloneable.h"
#include "posenc/functional/sine_position_embedding_2d.h"

namespace posenc {

using SinePositionEmbedding2dOptions = functional::SinePositionEmbedding2dFuncOptions;

/// The two-dimensional sinusoid of DETR and its descendants, which counts the cells that are not
/// padding; formula: functional::sine_position_embedding_2d().
///
/// mask: (B, H, W) bool, TRUE WHERE PADDING STANDS  ->  (B, D, H, W) float32; or an image without
/// padding (B, C, H, W)  ->  (B, D, H, W) in its dtype. On the input's device.
/// No keys: nothing is stored. Without padding its bits are those of the presets `detr_2d` (with
/// their `normalize`), `deformable_detr_2d` (offset -0.5) and `dab_detr_2d` (temperature 20,
/// Frequency::PowerOfProduct). A row or column of padding alone has coordinate 0, or
/// offset / eps * scale. An image's encoding is a view that its batch shares: copy before writing.
/// Errors: functional::sine_position_embedding_2d(), options when the module is made.
/// Source: `PositionEmbeddingSine` (facebookresearch/detr), `DetrSinePositionEmbedding`,
/// `DeformableDetrSinePositionEmbedding`, `DabDetrSinePositionEmbedding` (transformers 5.23.0),
/// `SinePositionalEncoding` (mmdet 3.3.0).
class SinePositionEmbedding2dImpl : public Cloneable<SinePositionEmbedding2dImpl> {
 public:
  explicit SinePositionEmbedding2dImpl(int64_t d_model)
      : SinePositionEmbedding2dImpl(SinePositionEmbedding2dOptions(d_model)) {}
  explicit SinePositionEmbedding2dImpl(SinePositionEmbedding2dOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& mask);

  SinePositionEmbedding2dOptions options;
};

TORCH_MODULE(SinePositionEmbedding2d);

}  // namespace posenc
