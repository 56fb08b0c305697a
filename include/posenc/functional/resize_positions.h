#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "posenc/export.h"

namespace posenc {

/// How systems resize a trained table of positions to another grid of patches. They differ in the
/// filter, in the arithmetic, and in when the table is left as it is.
enum class PositionResize {
  Refuse,                     ///< not at all: another size is an error
  Bicubic,                    ///< in the table's dtype: ViT, DeiT, CLIP, SigLIP, BEiT
  BicubicFloat32,             ///< in float32: DINOv2
  BicubicAntialias,           ///< in float32 with antialias: DINOv2 with registers
  BicubicAntialiasKeepEqual,  ///< the same, but an equal grid is left as it is: timm
  BicubicGrow,                ///< by scale factors, only to larger sizes: TVP
  Bilinear,                   ///< in the table's dtype: DPT
  BilinearAntialias,          ///< in float32: SigLIP 2
  Nearest,                    ///< in the table's dtype: TimeSformer
};

/// Returns the rule with the name that it has in the documentation: `bicubic`, `bicubic_float32`,
/// `bicubic_antialias`, `timm`, `bicubic_grow`, `bilinear`, `bilinear_antialias`, `nearest`.
///
/// Errors: c10::ValueError, listing the names, for any other.
PositionResize position_resize_of(const std::string& name);

namespace functional POSENC_EXPORT {

/// Resizes a trained table of positions from one grid of patches to another, as the named system
/// does, in every bit.
///
/// table: (prefix + N, D) or (1, prefix + N, D), the rows of `prefix` class and register tokens
/// first, which pass unchanged  ->  the same rank, prefix + height * width rows.
///
/// The old grid is square, int(sqrt(N)) on a side, as all of these systems take it to be, unless
/// `from_height` and `from_width` are given.
///
/// Errors: c10::ValueError for a table of another rank, an old grid that does not have N patches,
/// sizes that are not positive, and PositionResize::Refuse where the grids differ.
///
/// Source: `interpolate_pos_encoding` of transformers 5.23, `resample_abs_pos_embed` of timm 1.0.
at::Tensor resize_positions(const at::Tensor& table, int64_t height, int64_t width,
                            PositionResize rule, int64_t prefix = 0, int64_t from_height = 0,
                            int64_t from_width = 0);

}  // namespace functional
}  // namespace posenc
