#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>

#include "posenc/export.h"
#include "posenc/positions/rotary/rotary_options.h"

namespace posenc POSENC_EXPORT {

/// The frequencies of a rotary embedding, and the factor of its cos and sin.
struct RotaryFrequencies {
  /// (options.frequency_count()), in the dtype given by options.angle_type(); with Precision::Exact
  /// (2, count), float64, each frequency the sum of two numbers.
  at::Tensor inv_freq;
  double attention_scaling = 1.0;  ///< the factor of cos and sin
};

/// The frequencies for sequences of length `length`, the largest position plus one; 0: as the
/// mirrored system computes them when it is constructed. The length is used only if
/// options.length_dependent(), and `dtype`, that of the hidden states, only with AngleType::Input.
///
/// Errors: those of validate(); c10::ValueError for a negative length and for Frequency::Learned.
RotaryFrequencies rotary_frequencies(const RotaryOptions& options, int64_t length = 0,
                                     at::ScalarType dtype = at::kFloat);

/// cos and sin of a rotary embedding; with CosLayout::Complex real and imaginary part.
struct RotaryCosSin {
  at::Tensor cos;  ///< the cosines, or real parts
  at::Tensor sin;  ///< the sines, or imaginary parts
  /// With xPos, the factors of the channels of q, and the inverses of those of k; otherwise
  /// undefined.
  at::Tensor scale = {};
};

/// cos and sin at `position_ids`, as the mirrored system's own class returns them to a layer whose
/// hidden states are of type `dtype`.
///
/// position_ids: integers, (L) or (B, L); with planes also (planes, B, L); with the axial kinds
/// (N, planes) or (B, N, planes), integers or real coordinates, such as rotary_grid() returns  ->
/// (L, W) or (B, L, W), W = options.cos_width(), on the device of position_ids.
///
/// A length-dependent scaling is determined by the largest position, which is read from the device.
/// Unlike systems with rotary::Dynamic, this does not remember the longest sequence so far;
/// RotaryEmbedding does.
///
/// Errors: those of validate(); c10::TypeError for positions that are not integers, nor float32 or
/// float64 with the axial kinds, and a dtype that is not floating-point; c10::ValueError for a
/// wrong shape and a position that is out of range.
RotaryCosSin rotary_cos_sin(const RotaryOptions& options, const at::Tensor& position_ids,
                            at::ScalarType dtype = at::kFloat);

/// rotary_cos_sin() from given frequencies, such as a module's buffer.
RotaryCosSin rotary_cos_sin(const RotaryOptions& options, const RotaryFrequencies& frequencies,
                            const at::Tensor& position_ids, at::ScalarType dtype = at::kFloat);

/// The positions of a grid's patches, row by row or block by block; see rotary::Grid. sizes: the
/// number of patches on each axis, such as (height, width)  ->  (N, axes), N their product plus the
/// grid's zero_tokens; int64, or float32 where coordinates are real.
///
/// ```cpp
/// auto options = posenc::rotary_preset("dinov3", 64);
/// auto table = posenc::rotary_cos_sin(options, posenc::rotary_grid(options, {14, 14}));
/// ```
///
/// Errors: those of validate(); c10::ValueError unless there is a positive size for each plane and,
/// for Coordinates that need a reference, one reference each, and for a height or width that is no
/// multiple of grid.merge.
at::Tensor rotary_grid(const RotaryOptions& options, at::IntArrayRef sizes);

}  // namespace posenc
