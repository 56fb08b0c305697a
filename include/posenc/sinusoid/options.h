#pragma once

#include <c10/core/ScalarType.h>
#include <torch/arg.h>

#include <cstdint>

namespace posenc {

/// How the rate of pair i is computed from the base b and the exponent e_i = 2 i / D.
enum class Frequency {
  Exp,    ///< exp(2 i * -(ln b / D)); the scalar in brackets is formed in double, rounded once
  Power,  ///< b ** e_i
};

/// How a position p meets the rate: by its reciprocal or by itself.
enum class Phase {
  Product,   ///< p * (1 / b**e)
  Quotient,  ///< p / b**e
};

/// Over which tensor Frequency::Power is evaluated. The vectorised pow() and its scalar tail round
/// differently, so the shape decides last bits.
enum class PowerShape {
  Row,   ///< one row of exponents
  Grid,  ///< the whole (positions x exponents) grid: a row's bits then depend on all positions
};

/// Where the sines and cosines of a row stand.
enum class Layout {
  Interleaved,  ///< s0 c0 s1 c1 ...
  Halves,       ///< s0 s1 ... c0 c1 ...
};

/// What an odd dimension means. The notebooks leave it undefined, hence the default.
enum class OddDim {
  Error,       ///< refused
  ExtraSin,    ///< ceil(D/2) sines, floor(D/2) cosines
  ZeroColumn,  ///< floor(D/2) of each, and a last column of zeros
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
  /// b, the ratio between the longest and the shortest wavelength; positive and finite.
  TORCH_ARG(double, base) = 10000.0;
  TORCH_ARG(Frequency, frequency) = Frequency::Exp;
  TORCH_ARG(Phase, phase) = Phase::Product;
  TORCH_ARG(PowerShape, power_shape) = PowerShape::Row;
  TORCH_ARG(Layout, layout) = Layout::Interleaved;
  TORCH_ARG(OddDim, odd_dim) = OddDim::Error;
  /// The type of every intermediate value; the result is rounded to its own type last.
  TORCH_ARG(c10::ScalarType, arithmetic) = c10::ScalarType::Float;
};

/// Equal in every axis, hence the same bits.
bool operator==(const SinusoidOptions& a, const SinusoidOptions& b);
inline bool operator!=(const SinusoidOptions& a, const SinusoidOptions& b) { return !(a == b); }

/// Throws c10::ValueError that names the axis, the rule and the value when no table can be made.
void check(const SinusoidOptions& options);

}  // namespace posenc
