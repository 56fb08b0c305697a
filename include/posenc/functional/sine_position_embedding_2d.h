#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>

#include "posenc/sinusoid/axes.h"

namespace posenc::functional {

/// Defaults: DETR as its models build it, normalize included.
struct SinePositionEmbedding2dFuncOptions {
  SinePositionEmbedding2dFuncOptions(int64_t d_model) : d_model_(d_model) {}

  /// Channels D, half for y and half for x; twice DETR's `num_pos_feats`.
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(double, temperature) = 10000.0;
  /// Coordinates run up to `scale` whatever the image's size; false: 1, 2, ... in cells.
  TORCH_ARG(bool, normalize) = true;
  /// The last coordinate, in radians; with normalize only, as are the two that follow.
  TORCH_ARG(double, scale) = 6.283185307179586;
  /// Added to a coordinate before it is divided, in cells; -0.5 in Deformable DETR.
  TORCH_ARG(double, offset) = 0.0;
  /// Added to the divisor.
  TORCH_ARG(double, eps) = 1e-6;
  /// Power, or PowerOfProduct in DAB-DETR: other last bits.
  TORCH_ARG(Frequency, frequency) = Frequency::Power;
};

/// The sinusoid of each cell's place in the part of the image that is not padding:
///
///     y = cumsum(!mask, h), x = cumsum(!mask, w), both float32
///     y = (y + offset) / (y[:, -1:, :] + eps) * scale, x likewise
///     channel j of y's D/2: sin (j even) or cos (j odd) of y / T ** (2 (j // 2) / (D / 2))
///     channels: those of y, then those of x
///
/// mask: (B, H, W) bool, TRUE WHERE THERE IS PADDING as in DETR's NestedTensor (transformers'
/// pixel_mask says the opposite)  ->  (B, D, H, W) float32. Or an image (B, C, H, W) without
/// padding, real, of which only shape, dtype and device count  ->  (B, D, H, W) in its dtype,
/// rounded once. Throws c10::ValueError for another rank, an empty H or W, d_model that is no
/// multiple of 4, and options out of range; c10::TypeError for a mask that is not bool or an image
/// that is not real.
at::Tensor sine_position_embedding_2d(const at::Tensor& mask,
                                      const SinePositionEmbedding2dFuncOptions& options);

/// Throws c10::ValueError for options that no embedding can have.
void check(const SinePositionEmbedding2dFuncOptions& options);

}  // namespace posenc::functional
