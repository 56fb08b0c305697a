#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "posenc/sinusoid/axes.h"

namespace posenc {

/// One axis of a point whose coordinates all follow from one number p:
/// (complement ? 1 - p : p) * factor.
struct Coordinate {
  bool complement = false;
  double factor = 1.0;
  friend bool operator==(const Coordinate& a, const Coordinate& b) {
    return a.complement == b.complement && a.factor == b.factor;
  }
};

/// One sinusoidal positional encoding, operation by operation:
///
///     PE(p, pair i) = sin(p / base**(2 i / dim)), cos(p / base**(2 i / dim))
///
/// The axes are independent; a preset (preset.h) is a named value of this struct. The default is
/// the table of "Attention Is All You Need" as the Annotated Transformer and PyTorch's tutorials
/// compute it.
struct SinusoidOptions {
  explicit SinusoidOptions(int64_t dim) : dim_(dim) {}

  /// Number of channels D of a row.
  TORCH_ARG(int64_t, dim);

  // frequencies
  TORCH_ARG(Frequency, frequency) = Frequency::Exp;
  TORCH_ARG(Index, index) = Index::Even;
  TORCH_ARG(Divisor, divisor) = Divisor::Channels;
  /// Subtracted from the divisor: 1 makes the last wavelength 2 pi b itself.
  TORCH_ARG(double, shift) = 0.0;
  /// A divisor below 1 counts as 1.
  TORCH_ARG(bool, divisor_at_least_one) = false;
  /// b, the ratio between the longest and the shortest wavelength; positive and finite.
  TORCH_ARG(double, base) = 10000.0;
  /// The last frequency of Frequency::Linear, in radians per position.
  TORCH_ARG(double, max_frequency) = 1.0;
  TORCH_ARG(PowerShape, power_shape) = PowerShape::Row;
  TORCH_ARG(Arithmetic, arithmetic) = Arithmetic::Float32;
  /// Exact leaves the roundings above aside and evaluates the real-valued formula.
  TORCH_ARG(Precision, precision) = Precision::Reference;

  // angle
  TORCH_ARG(Phase, phase) = Phase::Product;
  /// The finished angle times this Scalar.
  TORCH_ARG(double, angle_scale) = 1.0;
  /// The finished angle times Scalar(D / L), L the table's nominal length.
  TORCH_ARG(bool, angle_by_length) = false;

  // channels
  TORCH_ARG(Layout, layout) = Layout::Interleaved;
  TORCH_ARG(bool, cos_first) = false;
  TORCH_ARG(OddDim, odd_dim) = OddDim::Error;
  /// The coordinates themselves, unscaled, before the sines; not of a grid.
  TORCH_ARG(bool, raw_first) = false;

  // rows
  TORCH_ARG(Rows, rows) = Rows::Up;
  /// The first position and the distance of the next; whole numbers stay exact below 2^53.
  TORCH_ARG(double, start) = 0.0;
  TORCH_ARG(double, step) = 1.0;
  /// This row of the table is zero, as for a padding index.
  TORCH_ARG(std::optional<int64_t>, zero_row) = std::nullopt;
  /// One row of zeros before all others, as for a class token.
  TORCH_ARG(bool, cls_row) = false;

  // grids and points
  /// Extents of a grid, outermost first, in cells; rows are row-major. Empty: no grid.
  TORCH_ARG(std::vector<int64_t>, grid);
  /// For each block of channels, which of the grid's axes it encodes; empty: in the grid's order.
  TORCH_ARG(std::vector<int64_t>, channel_axes);
  TORCH_ARG(AxisDepth, axis_depth) = AxisDepth::Outer;
  TORCH_ARG(AxisValues, axis_values) = AxisValues::Plain;
  TORCH_ARG(AxisChannels, axis_channels) = AxisChannels::Equal;
  TORCH_ARG(double, base_size) = 1.0;
  TORCH_ARG(double, interpolation_scale) = 1.0;
  /// Points instead of a grid: the coordinates that one position stands for.
  TORCH_ARG(std::vector<Coordinate>, coordinates);

  TORCH_ARG(Post, post) = Post::None;

 public:
  /// Number of axes: of the grid, of a point, or one.
  int64_t axes() const;
  /// Channels of a row of the table, which an odd dim may widen or narrow.
  int64_t channels() const;
  /// Channels that each axis fills, in the order of the row.
  std::vector<int64_t> axis_widths() const;
  /// Rows of a table of nominal length `length`.
  int64_t row_count(int64_t length) const;
};

/// Equal in every axis, hence the same bits.
bool operator==(const SinusoidOptions& a, const SinusoidOptions& b);
inline bool operator!=(const SinusoidOptions& a, const SinusoidOptions& b) { return !(a == b); }

/// Throws c10::ValueError that names the axis, the rule and the value when no table can be made.
void check(const SinusoidOptions& options);

}  // namespace posenc
