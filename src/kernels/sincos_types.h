// Plain data types shared by the exact kernels and their callers. C headers only: the kernels
// include this once per instruction set.
#pragma once
#include <stdint.h>

namespace posenc::kernels::sincos {

// 128-bit integers: an extension that every compiler for these instruction sets has.
__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UWide;

// w_k = scale * [pi] * base^(-(first + k*step)/denominator), k = 0..count-1; an entry is sin or cos
// of position * w_k, all in real arithmetic.
//   interleaved, D dims, shift 0: step 2, denominator D
//   halves of n, shift 1: step 1, denominator n - 1
struct FrequencySpec {
  double base = 10000.0;
  double scale = 1.0;
  bool times_pi = false;
  int64_t first = 0;
  int64_t step = 2;
  int64_t denominator = 512;
  int64_t count = 256;
  // If set, w_k = (values_high[k] + values_low[k]) * scale * [pi] exactly; values_low may be null.
  // Must outlive the frequencies.
  const double* values_high = nullptr;
  const double* values_low = nullptr;
};

enum class Format { Float32, Float64, BFloat16, Float16 };

// Where a row's entries are stored, in elements. Row r starts at data + r * row_stride.
//   interleaved: sin 0,2  cos 1,2     halves: sin 0,1  cos n,1
//   planes: cos_offset = the size of the first plane
struct RowLayout {
  int64_t sin_offset = 0, sin_stride = 2, sin_count = 0;
  int64_t cos_offset = 1, cos_stride = 2, cos_count = 0;
  int64_t zero_column = -1;  // a column of zeros, or -1 for none
  int64_t row_stride = 0;
};

// Row r in [0, n) has position start + r*step, or integers[r], or reals[r]. The fast path needs
// |position| < 2^31; any finite position gives the correct result.
struct Positions {
  int64_t start = 0;
  int64_t step = 1;
  const int64_t* integers = nullptr;
  const double* reals = nullptr;
};

// The frequencies as the kernels read them: parallel arrays of `padded` entries (a multiple of
// kLanes, zeros beyond count).
constexpr int64_t kLanes = 16;
constexpr int kPieces = 6;
struct FrequencyView {
  int64_t count = 0;
  int64_t padded = 0;
  bool guarded = false;  // some array below holds a NaN: see the end of this struct
  // The fractional part of w/(2 pi), centred on 0, as a sum of six parts: five of 20 bits, so that
  // a part times an integer position below 2^33 is exact in float64, and a float64 remainder.
  const double* piece[kPieces] = {};
  const double* rest = nullptr;   // pieces 2..5 in one float64
  const double* reach = nullptr;  // upper bound of 2 pi |fraction|
  // w/(2 pi), not reduced, as a double-double: for the fractional part of real positions.
  const double* turns_high = nullptr;
  const double* turns_low = nullptr;
  const double* turns_reach = nullptr;  // upper bound of 2 pi |w/(2 pi)|
  const double* part_guard = nullptr;   // 0, or NaN where the fraction is not w/(2 pi) itself:
                                        // row_pair then takes no fractional part
  // A NaN in any of these makes the entry a NaN, which no bound decides, so that the Ziv fallback
  // computes it: what is out of the kernels' range is slow, never wrong.
};

// Absolute error bounds of one product of two float64 or double-double rows, derived in
// sincos_rows.cpp and sincos_rows_pair.cpp. The sine's bound shrinks with the angle.
constexpr double kBound64 = 0x1p-48;
constexpr double kBoundPair = 0x1p-96;

}  // namespace posenc::kernels::sincos
