#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/sinusoid/axes.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// Options of sine_position_embedding_2d(). The defaults are those of DETR's models, including
/// `normalize`.
struct SinePositionEmbedding2dFuncOptions {
  /// An embedding with `d_model` channels.
  SinePositionEmbedding2dFuncOptions(int64_t d_model) : d_model_(d_model) {}

  /// Number of channels D, half for y and half for x; twice DETR's `num_pos_feats`.
  TORCH_ARG(int64_t, d_model);
  /// The ratio T of the longest wavelength to the shortest.
  TORCH_ARG(double, temperature) = 10000.0;
  /// Scales coordinates to end at `scale` for any image size; false: 1, 2, ... in cells.
  TORCH_ARG(bool, normalize) = true;
  /// The last coordinate, in radians. This option, offset and eps apply only with `normalize`.
  TORCH_ARG(double, scale) = 6.283185307179586;
  /// Added to a coordinate before the division, in cells; -0.5 in Deformable DETR.
  TORCH_ARG(double, offset) = 0.0;
  /// Added to the divisor.
  TORCH_ARG(double, eps) = 1e-6;
  /// Power, or PowerOfProduct as in DAB-DETR; the two differ in the last bits.
  TORCH_ARG(sinusoid::Frequency, frequency) = sinusoid::Frequency::Power;

 public:
  /// Throws c10::ValueError for options out of range.
  void validate() const;

  POSENC_FIELDS(SinePositionEmbedding2dFuncOptions, d_model_, temperature_, normalize_, scale_,
                offset_, eps_, frequency_);
};

/// The sinusoid of each cell's coordinates within the part of the image that is not padding:
///
///     y = cumsum(!mask, h), x = cumsum(!mask, w), both float32
///     y = (y + offset) / (y[:, -1:, :] + eps) * scale, x likewise
///     channel j of y's D/2: sin (j even) or cos (j odd) of y / T ** (2 (j // 2) / (D / 2))
///     channels: those of y, then those of x
///
/// mask: (B, H, W) bool, where TRUE IS PADDING as in DETR's NestedTensor (transformers' pixel_mask
/// has the opposite meaning)  ->  (B, D, H, W) float32.
///
/// Instead of a mask, a floating-point image (B, C, H, W) without padding, of which only shape,
/// dtype and device are used  ->  (B, D, H, W) in its dtype, rounded once.
///
/// Errors: c10::ValueError for a wrong rank, an empty H or W, a d_model that is not a multiple of
/// 4, and options out of range; c10::TypeError for a mask that is not bool and an image that is not
/// floating-point.
at::Tensor sine_position_embedding_2d(const at::Tensor& mask,
                                      const SinePositionEmbedding2dFuncOptions& options);

}  // namespace functional
}  // namespace posenc
