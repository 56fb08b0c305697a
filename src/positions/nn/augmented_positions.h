#pragma once

#include <ATen/core/Tensor.h>

namespace posenc {

/// How the coordinates of an image's patches are changed in training; RotaryPositionEmbedding2d has
/// the formulas. Zeros change nothing.
struct PositionAugmentation {
  double shift = 0.0, jitter = 0.0, rescale = 0.0;

  bool is_none() const { return shift == 0.0 && jitter == 0.0 && rescale == 0.0; }
};

/// Throws c10::ValueError, beginning with `[module]`, for numbers that are out of range.
void check_augmentation(const char* module, const PositionAugmentation& augmentation);

/// The coordinates (..., axes) changed by random numbers, drawn as DINOv3 draws them.
at::Tensor augmented_positions(const at::Tensor& positions,
                               const PositionAugmentation& augmentation);

}  // namespace posenc
