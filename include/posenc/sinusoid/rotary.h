#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>
#include <vector>

#include "posenc/export.h"
#include "posenc/sinusoid/axes.h"
#include "posenc/sinusoid/rotary_axes.h"

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
/// A preset (rotary_preset.h) has the options of a real model, rotary_options_from_hf()
/// (models/rotary_config.h) those of a config.json.
struct RotaryOptions {
  /// A rotary embedding of `dim` channels. No pairing is the usual one: with the other one a model
  /// runs, and is wrong.
  RotaryOptions(int64_t dim, rotary::Pairing pairing) : dim_(dim), pairing_(pairing) {}

  /// Number of channels D that rotate; an odd D rotates D + 1.
  TORCH_ARG(int64_t, dim);
  /// Which channels form a pair.
  TORCH_ARG(rotary::Pairing, pairing);

  // frequencies
  /// The base b (rope_theta); positive and finite.
  TORCH_ARG(double, base) = 10000.0;
  /// How the frequencies are stretched.
  TORCH_ARG(rotary::Scaling, scaling) = rotary::Plain {};
  /// Reference: the bits of the mirrored system, whose float32 angles lose a decimal digit with
  /// each power of ten of the position. Exact: cos and sin of the real angle, rounded once, at any
  /// position below 2^31.
  TORCH_ARG(Precision, precision) = Precision::Reference;

  // positions
  /// How several position axes are combined.
  TORCH_ARG(rotary::Planes, planes) = rotary::Planes::One;
  /// The number of frequencies of each section.
  TORCH_ARG(std::vector<int64_t>, sections);
  /// The number of planes of the axial kinds.
  TORCH_ARG(int64_t, axes) = 2;

  // cos and sin
  /// What cos and sin hold.
  TORCH_ARG(rotary::CosLayout, cos_layout) = rotary::CosLayout::Halves;
  /// Their dtype.
  TORCH_ARG(rotary::CosType, cos_type) = rotary::CosType::Input;

  // rotation
  /// How q and k are multiplied.
  TORCH_ARG(rotary::Arithmetic, arithmetic) = rotary::Arithmetic::Input;
  /// Which channels of a head rotate.
  TORCH_ARG(rotary::Part, part) = rotary::Part::Whole;
  /// Rotates the other way, by -a: nanochat.
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
  /// Number of position planes: 1 without them.
  int64_t plane_count() const;
  /// Whether a patch's positions are the last axis of position_ids, and not planes of them.
  bool axial() const;
  /// Number of channels that the exponents are divided by: D, or those of one axis.
  int64_t frequency_dim() const;
  /// Throws c10::ValueError, naming the option, the rule and the value, if nothing can be computed.
  void validate() const;
};

/// The frequencies of a rotary embedding, and the factor of its cos and sin.
struct RotaryFrequencies {
  /// (n), or those of one axis, float32; with Precision::Exact (2, n), float64, each frequency the
  /// sum of two numbers.
  at::Tensor inv_freq;
  double attention_scaling = 1.0;  ///< the factor of cos and sin
};

/// The frequencies for sequences of length `length`, the largest position plus one; 0: as the
/// mirrored system computes them when it is constructed. The length counts only where
/// options.length_dependent().
///
/// Errors: those of validate(); c10::ValueError for a negative length.
RotaryFrequencies rotary_frequencies(const RotaryOptions& options, int64_t length = 0);

/// cos and sin of a rotary embedding; with CosLayout::Complex real and imaginary part.
struct RotaryCosSin {
  at::Tensor cos;  ///< the cosines, or real parts
  at::Tensor sin;  ///< the sines, or imaginary parts
};

/// cos and sin at `position_ids`, as the mirrored system's own class returns them to a layer whose
/// hidden states are of type `dtype`.
///
/// position_ids: integers, (L) or (B, L); with planes also (planes, B, L); of patches, with the
/// axial kinds, (N, planes) or (B, N, planes)  ->  (L, W) or (B, L, W), W = options.cos_width(), on
/// the device of position_ids.
///
/// With a length-dependent scaling the largest position decides, which is read from the device.
/// A system that remembers the longest sequence it has seen (rotary::Dynamic) is a new one here at
/// each call; RotaryEmbedding has its memory.
///
/// Errors: those of validate(); c10::TypeError for positions that are not integers and a dtype that
/// is not floating-point; c10::ValueError for a wrong shape.
RotaryCosSin rotary_cos_sin(const RotaryOptions& options, const at::Tensor& position_ids,
                            at::ScalarType dtype = at::kFloat);

/// rotary_cos_sin() from given frequencies, such as a module's buffer.
RotaryCosSin rotary_cos_sin(const RotaryOptions& options, const RotaryFrequencies& frequencies,
                            const at::Tensor& position_ids, at::ScalarType dtype = at::kFloat);

}  // namespace posenc
