#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {
namespace relative POSENC_EXPORT {

/// A grid of patches, row by row.
struct Grid {
  int64_t height = 0;  ///< rows of patches; positive
  int64_t width = 0;   ///< columns of patches; positive

  POSENC_FIELDS(Grid, height, width);
};

/// How coordinates of patches become the input of a continuous position bias.
enum class LogCoordinates {
  SwinV2,      ///< sign(x) log2(|x| + 1) / log2(8), where x is scaled to [-8, 8]; zeros at size 1
  TimmSwin,    ///< the same, without a rule for size 1, which is refused
  TimmSwinV2,  ///< the same; an axis of size 1 is not scaled
  TimmNatural  ///< sign(x) ln(1 + |x|), timm's `cr`
};

}  // namespace relative

/// The rows of a table for each pair of patches of a window: one for each pair of differences of
/// rows and columns, (2 height - 1) (2 width - 1) of them.
///
/// With a class token before the patches, three more rows follow: from the class token to a patch,
/// from a patch to it, and for itself.
///
/// Returns (N, N), int64, where N is the number of tokens.
///
/// Errors: c10::ValueError for a window that is not positive, or of more than 2^24 patches.
///
/// Source: `relative_position_index` of Swin and BEiT in transformers 5.23,
/// `gen_relative_position_index` of timm 1.0.31.
at::Tensor relative_window_index(relative::Grid window, bool class_token = false);

/// The rows of a table with height * width rows for the absolute differences between patches; the
/// queries are every `stride`-th row and column.
///
/// Returns (ceil(height / stride) ceil(width / stride), height * width), int64.
///
/// Errors: c10::ValueError for a grid or a stride that is not positive.
///
/// Source: `attention_bias_idxs` of LeViT and TinyViT in timm 1.0.31.
at::Tensor relative_distance_index(relative::Grid grid, int64_t stride = 1);

/// The mask of windows of a grid that was rolled by `shift` rows and columns: tokens that were not
/// neighbours before do not attend to each other. Swin adds -100 to their scores, and not -inf.
///
/// Returns (windows, window^2, window^2) with the values 0 and -100.
///
/// Errors: c10::ValueError for a shift outside (0, window) and a grid that windows do not divide.
///
/// Source: `SwinLayer.get_attn_mask` of transformers 5.23.
at::Tensor shifted_window_mask(relative::Grid grid, int64_t window, int64_t shift,
                               at::ScalarType dtype = at::kFloat);

/// The coordinates of a window's differences, on a logarithmic scale: the input of the small
/// network whose outputs are the entries of a table. `pretrained` is the window that the
/// coordinates are scaled by; of height 0: `window`.
///
/// Returns (2 height - 1, 2 width - 1, 2), float32.
///
/// Errors: c10::ValueError for a window that is not positive, and for one of size 1 with TimmSwin.
///
/// Source: `create_coords_table_and_index` of Swin v2 in transformers 5.23,
/// `gen_relative_log_coords` and `swin_transformer_v2.WindowAttention` of timm 1.0.31.
at::Tensor relative_log_coordinates(relative::Grid window, relative::LogCoordinates kind,
                                    relative::Grid pretrained = {});

}  // namespace posenc
