#pragma once

/// The words in which SinusoidOptions describes a sinusoid. C is the number of channels that one
/// axis fills (the whole row without a grid), n = C / 2, m = the divisor, b = the base.

namespace posenc {

/// The index i that each frequency is computed from.
enum class Index {
  Even,        ///< 0, 2, 4, ... below C
  Half,        ///< 0, 1, ..., n - 1
  Paired,      ///< 2 (j / 2) for each channel j; sines take the even entries, cosines the odd
  PairNumber,  ///< j / 2 for each channel j; likewise
  Doubled,     ///< 2 j for each channel j; likewise: sine and cosine of a pair differ in frequency
  PairedHalf,  ///< 2 (k / 2), k = 0 ... n - 1: each frequency twice
};

/// What the index is divided by, before `shift` is subtracted.
enum class Divisor {
  Channels,      ///< C
  HalfChannels,  ///< C / 2, not rounded
  Pairs,         ///< n
};

/// The frequency f from i, m and b, with its roundings. "Scalar": formed in double, rounded once by
/// the operation that takes it.
enum class Frequency {
  Exp,               ///< exp(i * Scalar(-(ln b / m)))
  ExpOfFloatLog,     ///< the same with ln b rounded to float32 first
  ExpInFloat,        ///< the same with logarithm and division in float32
  ExpDividedLast,    ///< exp((i * Scalar(-ln b)) / m): two roundings
  ExpFloored,        ///< exp(i * floor((-ln b / (2 m)) / 2)): LoFTR's floor-division bug
  Power,             ///< b ** (i / m), a divisor for Phase::Quotient
  PowerReciprocal,   ///< 1 / b ** (i / m)
  PowerNegative,     ///< b ** -(i / m)
  PowerInverseBase,  ///< (1 / b) ** (i / m), 1 / b rounded to the type first
  PowerOfProduct,    ///< b ** (i * Scalar(2 / m))
  PowersOfTwo,       ///< 2 ** linspace(0, bands - 1, bands)
  Linear,            ///< linspace(1, max_frequency, bands)
};

/// How a position p meets the frequency f.
enum class Phase {
  Product,   ///< p * f
  Quotient,  ///< p / f
};

/// Over which tensor a power is evaluated. The vectorised pow() and its scalar tail round
/// differently, so the shape decides last bits.
enum class PowerShape {
  Row,   ///< one row of exponents
  Grid,  ///< the whole (positions x exponents) grid: a row's bits then depend on all positions
};

/// The type of the intermediate values; the result is rounded to its own type last.
enum class Arithmetic {
  Float32,
  Float64,
  Float64Angle,  ///< float64 up to the angle, which is rounded to float32 before sin and cos
};

/// Whose numbers a table holds.
enum class Precision {
  Reference,  ///< the system's own: its operations, its roundings, its bits
  Exact,      ///< the formula's: each entry rounded once, the same bits on every machine
};

/// Where the sines and cosines of a row stand.
enum class Layout {
  Interleaved,  ///< s0 c0 s1 c1 ...
  Halves,       ///< s0 s1 ... c0 c1 ...
};

/// How deep the axes of a grid stand in a row.
enum class AxisDepth {
  Outer,   ///< one block an axis
  Middle,  ///< Halves: s(x) s(y) c(x) c(y); Interleaved: s0(x) c0(x) s0(y) c0(y) s1(x) ...
  Inner,   ///< Interleaved: s0(x) s0(y) c0(x) c0(y) ...
};

/// What an odd dimension means.
enum class OddDim {
  Error,       ///< refused
  ExtraSin,    ///< ceil(D/2) sines, floor(D/2) cosines
  ZeroColumn,  ///< zeros on the right, up to D
  Truncate,    ///< computed for the next even number, the first D channels kept
  Widen,       ///< D + 1 channels
  Narrow,      ///< D - 1 channels
  ExtraRow,    ///< D - 1 channels and one more row, of zeros: a padding of the wrong axis
};

/// The positions of a table of nominal length L, without a grid. `start` and `step` apply to Up.
enum class Rows {
  Up,                ///< start + step * (0 ... L-1)
  Down,              ///< L-1 ... 0
  DownFromLength,    ///< L ... 0, L+1 rows
  Relative,          ///< L-1 ... -(L-1), 2L-1 rows
  RelativeDistance,  ///< their absolute values
  RelativeEven,      ///< L ... -(L-1), 2L rows
};

/// The value v of cell 0, 1, ... along an axis of a grid of `extent` cells.
enum class AxisValues {
  Plain,       ///< 0, 1, ...
  OneBased,    ///< 1, 2, ...
  Normalized,  ///< v / (v_last + 1e-6) * 2 pi with v one-based
  Centered,    ///< (v - 0.5) / (v_last + 1e-6) * 2 pi with v one-based
  Scaled,      ///< v / (extent / base_size) / interpolation_scale
};

/// How many of the D channels each axis gets.
enum class AxisChannels {
  Equal,        ///< D / axes, which must be even
  CeilEven,     ///< ceil(D / (2 axes)) * 2
  FloorEven,    ///< D / (2 axes) * 2
  QuarterRest,  ///< D/4, 3D/8, 3D/8 of three axes
};

/// What is done to the finished table, in its arithmetic type's float32.
enum class Post {
  None,
  DivideBySqrtDim,     ///< table / Scalar(sqrt(D))
  MultiplyByRsqrtDim,  ///< table * float32(D ** -0.5)
  Standardize,         ///< t -= mean(t), then t / (std(t) * 10)
};

}  // namespace posenc
