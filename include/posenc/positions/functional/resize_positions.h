#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// How systems resize a trained table of positions to another grid of patches. They differ in the
/// filter, in the arithmetic, and in when they leave the table unchanged. All sample between the
/// centres of the cells (align_corners=False).
///
/// The rules marked with a star are those of transformers that leave the table unchanged only if
/// the image is square and has as many patches as the table.
enum class PositionResize {
  Refuse,            ///< not at all: another size is an error
  Bicubic,           ///< * in the table's dtype: ViT, DeiT, CLIP, SigLIP, BEiT
  BicubicFloat32,    ///< * in float32: DINOv2 in transformers
  BicubicOffset,     ///< * in float32, by the factors (size + 0.1) / old: DINOv2's own code
  BicubicAntialias,  ///< * in float32 with antialias: DINOv2 with registers
  BicubicAntialiasKeepEqual,  ///< the same, but an equal grid is left unchanged: timm
  BicubicGrow,                ///< by factors; the first rows of an axis that is shorter: TVP
  Bilinear,                   ///< in the table's dtype: DPT
  BilinearCrop,               ///< in float32 to a square, of which a part is taken: RADIO
  BilinearAntialias,          ///< in float32 with antialias: SigLIP 2
  Nearest,                    ///< unless there are as many patches: TimeSformer
};

/// Returns the rule with the name that it has in the documentation: `refuse`, `bicubic`,
/// `bicubic_float32`, `bicubic_offset`, `bicubic_antialias`, `timm`, `bicubic_grow`, `bilinear`,
/// `bilinear_crop`, `bilinear_antialias` or `nearest`.
///
/// Errors: c10::ValueError, listing the names, for any other.
PositionResize position_resize_of(const std::string& name);

/// Returns the name of a rule.
std::string to_string(PositionResize rule);

namespace functional POSENC_EXPORT {

/// Resizes a trained table of positions from one grid of patches to another, with the same bits as
/// the named system.
///
/// table: (prefix + N, D) or (1, prefix + N, D), which begins with the rows of `prefix` class and
/// register tokens; these are not changed  ->  the same rank and dtype, prefix + height * width
/// rows, by rows of the grid.
///
/// Unless `from_height` and `from_width` are given, the old grid is square, int(sqrt(N)) on a side,
/// as most of these systems assume.
///
/// Gradients flow to the table.
///
/// Errors: c10::TypeError for a table that is not floating-point; c10::ValueError for a table of
/// another rank, an old grid that does not have N patches, sizes that are not positive,
/// PositionResize::Refuse where the grids differ, and BicubicGrow where a factor is rounded so that
/// the result has another size, which TVP refuses as well.
///
/// Source: `interpolate_pos_encoding` of transformers 5.23, `resample_abs_pos_embed` of timm 1.0.
at::Tensor resize_positions(const at::Tensor& table, int64_t height, int64_t width,
                            PositionResize rule, int64_t prefix = 0, int64_t from_height = 0,
                            int64_t from_width = 0);

}  // namespace functional
}  // namespace posenc
