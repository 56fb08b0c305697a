#pragma once

// Parameters read off the values: a pair (sin a, cos a) gives its angle, angles of falling
// frequency give the position, and their rates from row to row give the base.

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "posenc/sinusoid/options.h"

namespace posenc::identification {

/// The pairs of one axis in a row: frequency (radians a position) and columns.
struct Pair {
  double frequency;
  int64_t sin, cos;
};
std::vector<Pair> pairs(const SinusoidOptions& options, int64_t block, int64_t channels);

/// Positions start + step * row.
struct Line {
  double start, step;
};

/// The line through the positions of `rows` (N, C) in float64, which are the rows `numbers` of a
/// table; its numbers are snapped to whole or simple ones nearby.
std::optional<Line> decode(const SinusoidOptions& options, const at::Tensor& rows,
                           const std::vector<int64_t>& numbers);

/// The base and the step per row that turn the pairs' frequencies (which have base `base`) into the
/// rates of consecutive `rows` (N, C), float64. The step is taken to be below pi.
struct Rates {
  double base, step;
};
std::optional<Rates> fit_rates(const std::vector<Pair>& pairs, double base, const at::Tensor& rows);

/// The last frequency of sinusoid::Frequency::Linear, from rows at distance `step`.
std::optional<double> fit_linear(const std::vector<Pair>& pairs, double step,
                                 const at::Tensor& rows);

/// `value`, or a rounder number within a hundredth.
double rounder(double value);

/// The extents of a row-major grid of `rows` (N, C), outermost first, from the periods at which
/// columns return; one entry where nothing returns.
std::vector<int64_t> periods(const at::Tensor& rows);

}  // namespace posenc::identification
