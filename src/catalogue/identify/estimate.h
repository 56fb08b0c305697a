#pragma once

// Estimates parameters from the values: a pair (sin a, cos a) gives its angle, the angles of all
// frequencies give the position, and their rates from row to row give the base.

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "posenc/positions/sinusoid/options.h"

namespace posenc::identification {

/// A sine and a cosine of one axis: their frequency (radians per position) and columns.
struct Pair {
  double frequency;
  int64_t sin, cos;
};
std::vector<Pair> pairs(const SinusoidOptions& options, int64_t block, int64_t channels);

/// Positions start + step * row.
struct Line {
  double start, step;
};

/// The line through the positions of `rows` (N, C), float64, which are the rows `numbers` of a
/// table; start and step are snapped to whole or simple numbers nearby.
std::optional<Line> decode(const SinusoidOptions& options, const at::Tensor& rows,
                           const std::vector<int64_t>& numbers);

/// The base and the step per row that turn the pairs' frequencies (which have base `base`) into the
/// rates of consecutive `rows` (N, C), float64. The step is assumed to be below pi.
struct Rates {
  double base, step;
};
std::optional<Rates> fit_rates(const std::vector<Pair>& pairs, double base, const at::Tensor& rows);

/// The last frequency of sinusoid::Frequency::Linear, from rows that are `step` apart.
std::optional<double> fit_linear(const std::vector<Pair>& pairs, double step,
                                 const at::Tensor& rows);

/// `value`, or a rounder number within one percent.
double rounder(double value);

/// The extents of a row-major grid of `rows` (N, C), outermost first, from the periods at which
/// columns repeat; a single entry if none does.
std::vector<int64_t> periods(const at::Tensor& rows);

}  // namespace posenc::identification
