#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/rotary/rotary_axes.h"
#include "posenc/positions/rotary/rotary_scaling.h"
#include "posenc/positions/sinusoid/axes.h"

namespace posenc POSENC_EXPORT {

/// A rotary embedding, described down to its individual operations. Pair i of a head at position p
/// rotates by the angle a = p * f_i, where f_i = base**(-2 i / dim):
///
///     y1 = x1 cos(a) - x2 sin(a),  y2 = x2 cos(a) + x1 sin(a)
///
/// ```cpp
/// namespace rope = posenc::rotary;
/// auto options = posenc::RotaryOptions(128, rope::Pairing::Halves).base(500000.0);
/// options.scaling(rope::Linear{4.0});
/// ```
///
/// A preset (rotary_preset.h) has the options of a real system; rotary_options_from_hf()
/// (models/rotary_config.h) reads those of a config.json.
struct RotaryOptions {
  /// A rotary embedding of `dim` channels. The pairing has no default: with the wrong one a model
  /// runs without an error and gives wrong results.
  RotaryOptions(int64_t dim, rotary::Pairing pairing) : dim_(dim), pairing_(pairing) {}

  /// Number of channels D that rotate; an odd D rotates D + 1.
  TORCH_ARG(int64_t, dim);
  /// Which channels form a pair.
  TORCH_ARG(rotary::Pairing, pairing);

  // frequencies
  /// The base b (rope_theta); positive and finite.
  TORCH_ARG(double, base) = 10000.0;
  /// How the frequencies are scaled.
  TORCH_ARG(rotary::Scaling, scaling) = rotary::Default {};
  /// How they are computed.
  TORCH_ARG(rotary::Frequency, frequency) = rotary::Frequency::Power;
  /// The dtype of frequencies, angles, cosines and sines.
  TORCH_ARG(rotary::AngleType, angle_type) = rotary::AngleType::Float32;
  /// Reference: the bits of the mirrored system, whose float32 angles lose a decimal digit with
  /// each power of ten of the position. Exact: cos and sin of the real angle, rounded once, at any
  /// position below 2^31.
  TORCH_ARG(Precision, precision) = Precision::Reference;

  // positions
  /// How several position axes are combined.
  TORCH_ARG(rotary::Planes, planes) = rotary::Planes::One;
  /// The number of frequencies of each section.
  TORCH_ARG(std::vector<int64_t>, sections);
  /// The number of planes of the axial kinds, without axis_dims.
  TORCH_ARG(int64_t, axes) = 2;
  /// The channels of each plane of the axial kinds, 0 for a plane that rotates nothing; empty: the
  /// same number for all. The remaining pairs have angle 0.
  TORCH_ARG(std::vector<int64_t>, axis_dims);
  /// The base of each plane; empty: base for all.
  TORCH_ARG(std::vector<double>, axis_bases);
  /// Divisors of the angles of each plane; empty: none. Kandinsky's scale_factor.
  TORCH_ARG(std::vector<double>, axis_divisors);
  /// Whether the axial kinds begin with the last plane.
  TORCH_ARG(bool, last_plane_first) = false;
  /// Whether the pairs that remain after axis_dims come first: LTX-Video.
  TORCH_ARG(bool, rest_first) = false;
  /// Factor of the positions: DINOv3's 2 pi.
  TORCH_ARG(double, position_scale) = 1.0;
  /// Divisor of the angles: x-transformers' interpolation_factor.
  TORCH_ARG(double, angle_divisor) = 1.0;
  /// For the axial kinds: positions have one more number, such as a time stamp, which multiplies
  /// all angles: Music Flamingo.
  TORCH_ARG(bool, modulated) = false;
  /// How the positions of a grid's patches are computed; see rotary_grid().
  TORCH_ARG(rotary::Grid, grid);

  // cos and sin
  /// The contents of cos and sin.
  TORCH_ARG(rotary::CosLayout, cos_layout) = rotary::CosLayout::Halves;
  /// Their dtype.
  TORCH_ARG(rotary::CosType, cos_type) = rotary::CosType::Input;

  // rotation
  /// How q and k are multiplied.
  TORCH_ARG(rotary::Arithmetic, arithmetic) = rotary::Arithmetic::Input;
  /// Which channels of a head rotate.
  TORCH_ARG(rotary::Part, part) = rotary::Part::Whole;
  /// The number of heads that rotate, the first ones; 0: all.
  TORCH_ARG(int64_t, rotary_heads) = 0;
  /// What an attention layer of the system rotates.
  TORCH_ARG(rotary::AppliedTo, applied_to) = rotary::AppliedTo::Heads;
  /// For Pairing::HalvesPerHead, the number of heads that AppliedTo::AllHeads joins.
  TORCH_ARG(int64_t, joined_heads) = 1;
  /// Whether the system rotates the values as well: CLVP, RoFormer's rotary_value.
  TORCH_ARG(bool, rotary_value) = false;
  /// xPos's scale_base: q is also multiplied by s^p, and k by s^-p; 0: no such factors.
  TORCH_ARG(double, xpos_scale_base) = 0.0;
  /// The position p from which xPos's factors grow and shrink; unset: the middle of each call's
  /// positions, as in x-transformers. Scores depend on differences only, so that any number gives
  /// the same scores; calls whose keys are cached must have the same one.
  TORCH_ARG(std::optional<int64_t>, xpos_middle) = std::nullopt;
  /// Rotates in the opposite direction, by -a: nanochat.
  TORCH_ARG(bool, reversed) = false;
  /// The order of the axes in which the mirrored system rotates q and k.
  TORCH_ARG(rotary::HeadAxis, head_axis) = rotary::HeadAxis::BeforeLength;

 public:
  /// Number of frequencies n.
  int64_t frequencies() const { return (dim_ + 1) / 2; }
  /// Number of channels that rotate: 2 n.
  int64_t rotary_dim() const { return 2 * frequencies(); }
  /// Number of entries of cos and of sin for one position: n or 2 n.
  int64_t cos_width() const;
  /// Whether the frequencies or the factor of cos and sin depend on the length of the sequence.
  bool length_dependent() const;
  /// Number of position planes; 1 if there are no planes.
  int64_t plane_count() const;
  /// Whether a token's positions are the last axis of position_ids, and not planes of them.
  bool axial() const;
  /// The channels of each plane of Planes::Axial and AxialAlternating; otherwise D.
  std::vector<int64_t> plane_dims() const;
  /// Whether all planes have the same frequencies: without axis_dims, axis_bases and axis_divisors.
  bool shares_frequencies() const;
  /// Number of frequencies that are stored: those of one plane if all planes share them.
  int64_t frequency_count() const;
  /// Throws c10::ValueError, naming the option, the rule and the value, if the options cannot be
  /// computed.
  void validate() const;

  POSENC_FIELDS(RotaryOptions, dim_, pairing_, base_, scaling_, frequency_, angle_type_, precision_,
                planes_, sections_, axes_, axis_dims_, axis_bases_, axis_divisors_,
                last_plane_first_, rest_first_, position_scale_, angle_divisor_, modulated_, grid_,
                cos_layout_, cos_type_, arithmetic_, part_, rotary_heads_, applied_to_,
                joined_heads_, rotary_value_, xpos_scale_base_, xpos_middle_, reversed_,
                head_axis_);
};

/// Whether any option differs.
inline bool operator!=(const RotaryOptions& a, const RotaryOptions& b) { return !(a == b); }

}  // namespace posenc
