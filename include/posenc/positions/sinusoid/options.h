#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/sinusoid/axes.h"

namespace posenc POSENC_EXPORT {

/// A sinusoidal positional encoding, described down to its individual operations:
///
///     PE(p, pair i) = sin(p / base**(2 i / dim)), cos(p / base**(2 i / dim))
///
/// The options are independent of each other; a preset (preset.h) is a named set of them. The
/// defaults give the table of "Attention Is All You Need" as computed by the Annotated Transformer
/// and PyTorch's tutorials.
struct SinusoidOptions {
  /// The default encoding with `dim` channels.
  explicit SinusoidOptions(int64_t dim) : dim_(dim) {}

  /// Number of channels D of a row.
  TORCH_ARG(int64_t, dim);

  // frequencies
  /// Operations that compute a frequency.
  TORCH_ARG(sinusoid::Frequency, frequency) = sinusoid::Frequency::Exp;
  /// The index of each frequency.
  TORCH_ARG(sinusoid::Index, index) = sinusoid::Index::Even;
  /// The divisor of the index.
  TORCH_ARG(sinusoid::Divisor, divisor) = sinusoid::Divisor::Channels;
  /// Subtracted from the divisor; 1 makes the longest wavelength exactly 2 pi base.
  TORCH_ARG(double, shift) = 0.0;
  /// Replaces a divisor below 1 by 1.
  TORCH_ARG(bool, divisor_at_least_one) = false;
  /// The base b, the ratio of the longest wavelength to the shortest; positive and finite.
  TORCH_ARG(double, base) = 10000.0;
  /// The last frequency of sinusoid::Frequency::Linear, in radians per position.
  TORCH_ARG(double, max_frequency) = 1.0;
  /// The shortest period of sinusoid::Frequency::Periods, in positions; base times it is the
  /// longest.
  TORCH_ARG(double, min_period) = 1.0;
  /// The tensor over which powers are evaluated.
  TORCH_ARG(sinusoid::PowerShape, power_shape) = sinusoid::PowerShape::Row;
  /// The type of intermediate values.
  TORCH_ARG(sinusoid::Arithmetic, arithmetic) = sinusoid::Arithmetic::Float32;
  /// Exact ignores the roundings that the options above describe and evaluates the formula itself.
  TORCH_ARG(Precision, precision) = Precision::Reference;

  // angle
  /// Product or quotient of position and frequency.
  TORCH_ARG(sinusoid::Phase, phase) = sinusoid::Phase::Product;
  /// Factor of the finished angle, a Scalar.
  TORCH_ARG(double, angle_scale) = 1.0;
  /// Multiplies the finished angle by Scalar(D / L), where L is the table's nominal length.
  TORCH_ARG(bool, angle_by_length) = false;

  // channels
  /// The order of sines and cosines.
  TORCH_ARG(sinusoid::Layout, layout) = sinusoid::Layout::Interleaved;
  /// Puts cosines where the layout has sines, and vice versa.
  TORCH_ARG(bool, cos_first) = false;
  /// Handling of an odd dim.
  TORCH_ARG(sinusoid::OddDim, odd_dim) = sinusoid::OddDim::Error;
  /// Puts the unscaled coordinates before the sines; not for grids.
  TORCH_ARG(bool, raw_first) = false;

  // rows
  /// The position of each row.
  TORCH_ARG(sinusoid::PositionRange, position_range) = sinusoid::PositionRange::Up;
  /// The first position. Integers below 2^53 are exact.
  TORCH_ARG(double, start) = 0.0;
  /// The distance between positions.
  TORCH_ARG(double, step) = 1.0;
  /// The index of a row that is set to zero, such as the padding index.
  TORCH_ARG(std::optional<int64_t>, zero_row) = std::nullopt;
  /// Puts a row of zeros before all others, for a class token.
  TORCH_ARG(bool, cls_row) = false;

  // grids and points
  /// The extents of a grid in cells, outermost first; rows are row-major. Empty: no grid.
  TORCH_ARG(std::vector<int64_t>, grid);
  /// The axis of the grid that each block of channels encodes; empty: in the grid's order.
  TORCH_ARG(std::vector<int64_t>, channel_axes);
  /// How the axes are interleaved in a row.
  TORCH_ARG(sinusoid::AxisDepth, axis_depth) = sinusoid::AxisDepth::Outer;
  /// The value of each cell along an axis.
  TORCH_ARG(sinusoid::AxisValues, axis_values) = sinusoid::AxisValues::Plain;
  /// The number of channels of each axis.
  TORCH_ARG(sinusoid::AxisChannels, axis_channels) = sinusoid::AxisChannels::Equal;
  /// The extent of the base grid, for sinusoid::AxisValues::Scaled.
  TORCH_ARG(double, base_size) = 1.0;
  /// Divisor of the values, for sinusoid::AxisValues::Scaled.
  TORCH_ARG(double, interpolation_scale) = 1.0;
  /// Points instead of a grid: the coordinates computed from one position.
  TORCH_ARG(std::vector<sinusoid::Coordinate>, coordinates);

  /// Post-processing of the finished table.
  TORCH_ARG(sinusoid::Post, post) = sinusoid::Post::None;

 public:
  /// Number of axes: those of the grid or of a point, otherwise one.
  int64_t axes() const;
  /// Number of channels of a row of the table; an odd dim may make it wider or narrower.
  int64_t channels() const;
  /// Number of channels of each axis, in the order of the row.
  std::vector<int64_t> axis_widths() const;
  /// Number of rows of a table of nominal length `length`.
  int64_t row_count(int64_t length) const;
  /// Throws c10::ValueError, naming the option, the rule and the value, if no table can be
  /// computed.
  void validate() const;

  POSENC_FIELDS(SinusoidOptions, dim_, frequency_, index_, divisor_, shift_, divisor_at_least_one_,
                base_, max_frequency_, min_period_, power_shape_, arithmetic_, precision_, phase_,
                angle_scale_, angle_by_length_, layout_, cos_first_, odd_dim_, raw_first_,
                position_range_, start_, step_, zero_row_, cls_row_, grid_, channel_axes_,
                axis_depth_, axis_values_, axis_channels_, base_size_, interpolation_scale_,
                coordinates_, post_);
};

/// Whether any option differs.
inline bool operator!=(const SinusoidOptions& a, const SinusoidOptions& b) { return !(a == b); }

}  // namespace posenc
