#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/export.h"
#include "posenc/positions/relative/window.h"

namespace posenc POSENC_EXPORT {
namespace relative POSENC_EXPORT {

/// How systems resize the table of a window for another window.
enum class Resize {
  BilinearTransposed,  ///< bilinear, with height and width exchanged before: BEiT, data2vec
  GeometricLinear      ///< linear between points whose distances grow geometrically: timm
};

}  // namespace relative

/// Resizes the table of a window, (2 h - 1) (2 w - 1) rows and then `prefix` rows that are not
/// changed, for another window.
///
/// table: (rows, H)  ->  (new rows, H), in the same dtype
///
/// Errors: c10::TypeError for a table that is not floating-point; c10::ValueError for another
/// number of rows and windows that are not positive.
///
/// Source: `BeitRelativePositionBias.forward` of transformers 5.23, which interpolates even at the
/// same size and takes a table that is not square for its transpose; `resize_rel_pos_bias_table` of
/// timm 1.0.31, which leaves a table of the same size unchanged.
at::Tensor resize_relative_table(const at::Tensor& table, relative::Grid from, relative::Grid to,
                                 relative::Resize rule, int64_t prefix = 0);

/// Resizes the table of one axis to another length, linearly.
///
/// table: (rows, D)  ->  (length, D)
///
/// Errors: c10::TypeError for a table that is not floating-point; c10::ValueError for another rank
/// and a length that is not positive.
///
/// Source: `get_rel_pos` of SAM and ViTDet in transformers 5.23.
at::Tensor resize_relative_axis(const at::Tensor& table, int64_t length);

}  // namespace posenc
