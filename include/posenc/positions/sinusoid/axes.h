#pragma once

// The enumerations in which SinusoidOptions describes a sinusoid. C is the number of channels that
// one axis fills (the whole row without a grid), n = C / 2, m the divisor and b the base.

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Whether a table reproduces a reference implementation or the formula.
enum class Precision {
  Reference,  ///< bit-identical to the system: its operations with its roundings
  Exact,      ///< each entry of the formula correctly rounded, identical on every machine
};

/// The axes along which sinusoids differ, as in `posenc::sinusoid::Layout::Halves`.
namespace sinusoid {

/// The index i from which each frequency is computed. C is the number of channels of one axis
/// (the whole row without a grid), n = C / 2.
enum class Index {
  Even,        ///< 0, 2, 4, ... below C
  Half,        ///< 0, 1, ..., n - 1
  Paired,      ///< 2 (j / 2) for each channel j; sines take the even entries, cosines the odd
  PairNumber,  ///< j / 2 for each channel j; sines and cosines as in Paired
  Doubled,     ///< 2 j for each channel j; as in Paired, but sine and cosine differ in frequency
  PairedHalf,  ///< 2 (k / 2), k = 0 ... n - 1: each frequency twice
};

/// The divisor m of the index, before `shift` is subtracted from it. C and n as in Index.
enum class Divisor {
  Channels,      ///< C
  HalfChannels,  ///< C / 2, not rounded
  Pairs,         ///< n
};

/// The frequency f computed from index i, divisor m and base b, with its roundings. "Scalar" is a
/// number computed in double and rounded once by the tensor operation that takes it.
enum class Frequency {
  Exp,               ///< exp(i * Scalar(-(ln b / m)))
  ExpOfFloatLog,     ///< the same with ln b rounded to float32 first
  ExpInFloat,        ///< the same with logarithm and division in float32
  ExpDividedLast,    ///< exp((i * Scalar(-ln b)) / m): two roundings
  ExpFloored,        ///< exp(i * floor((-ln b / (2 m)) / 2)): LoFTR's floor-division bug
  Power,             ///< b ** (i / m), for use with Phase::Quotient
  PowerReciprocal,   ///< 1 / b ** (i / m)
  PowerNegative,     ///< b ** -(i / m)
  PowerInverseBase,  ///< (1 / b) ** (i / m), 1 / b rounded to the type first
  PowerOfProduct,    ///< b ** (i * Scalar(2 / m))
  PowersOfTwo,       ///< 2 ** linspace(0, bands - 1, bands)
  Linear,            ///< linspace(1, max_frequency, bands)
  Periods,           ///< 2 pi / (Scalar(min_period) * b ** linspace(0, 1, bands))
};

/// How the angle is computed from position p and frequency f.
enum class Phase {
  Product,   ///< p * f
  Quotient,  ///< p / f
};

/// The tensor over which powers are evaluated. Vectorised pow() and its scalar remainder loop
/// round differently, so the shape affects the last bits.
enum class PowerShape {
  Row,   ///< one row of exponents
  Grid,  ///< the whole (positions x exponents) grid: the bits of a row depend on all positions
};

/// The type of intermediate values. The result is rounded to its own type at the end.
enum class Arithmetic {
  Float32,       ///< float32 throughout
  Float64,       ///< float64 throughout
  Float64Angle,  ///< float64 up to the angle, which is rounded to float32 before sin and cos
};

/// The order of sines and cosines in a row.
enum class Layout {
  Interleaved,  ///< s0 c0 s1 c1 ...
  Halves,       ///< s0 s1 ... c0 c1 ...
};

/// How the axes of a grid are interleaved in a row.
enum class AxisDepth {
  Outer,   ///< one block per axis
  Middle,  ///< Halves: s(x) s(y) c(x) c(y); Interleaved: s0(x) c0(x) s0(y) c0(y) s1(x) ...
  Inner,   ///< Interleaved: s0(x) s0(y) c0(x) c0(y) ...
};

/// Handling of an odd dimension D.
enum class OddDim {
  Error,       ///< rejected
  ExtraSin,    ///< ceil(D/2) sines, floor(D/2) cosines
  ZeroColumn,  ///< padded with zeros on the right, up to D
  Truncate,    ///< computed for D + 1 channels, of which the first D are kept
  Widen,       ///< D + 1 channels
  Narrow,      ///< D - 1 channels
  ExtraRow,    ///< D - 1 channels and an additional row of zeros: padding along the wrong axis
};

/// The positions of a table of nominal length L without a grid. `start` and `step` apply to Up.
enum class PositionRange {
  Up,                ///< start + step * (0 ... L-1)
  Down,              ///< L-1 ... 0
  DownFromLength,    ///< L ... 0, L+1 rows
  Relative,          ///< L-1 ... -(L-1), 2L-1 rows
  RelativeDistance,  ///< the absolute values of Relative
  RelativeEven,      ///< L ... -(L-1), 2L rows
};

/// The value v of cells 0, 1, ... along an axis of a grid with `extent` cells.
enum class AxisValues {
  Plain,       ///< 0, 1, ...
  OneBased,    ///< 1, 2, ...
  Normalized,  ///< v / (v_last + 1e-6) * 2 pi with v one-based
  Centered,    ///< (v - 0.5) / (v_last + 1e-6) * 2 pi with v one-based
  Scaled,      ///< v / (extent / base_size) / interpolation_scale
};

/// The number of channels of each axis, out of D.
enum class AxisChannels {
  Equal,        ///< D / axes, which must be even
  CeilEven,     ///< ceil(D / (2 axes)) * 2
  FloorEven,    ///< D / (2 axes) * 2
  QuarterRest,  ///< D/4, 3D/8, 3D/8 for three axes
};

/// Post-processing of the finished table.
enum class Post {
  None,                ///< none
  DivideBySqrtDim,     ///< table / Scalar(sqrt(D))
  MultiplyByRsqrtDim,  ///< table * float32(D ** -0.5)
  Standardize,         ///< t -= mean(t), then t / (std(t) * 10)
};

/// One coordinate of a point, computed from the position p: (complement ? 1 - p : p) * factor.
struct Coordinate {
  bool complement = false;  ///< use 1 - p
  double factor = 1.0;      ///< factor of the coordinate

  POSENC_FIELDS(Coordinate, complement, factor);
};

}  // namespace sinusoid
}  // namespace posenc
