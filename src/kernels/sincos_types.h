// The plain data that the exact kernels and their callers share. C headers only: the kernels
// include this once per instruction set.
#pragma once
#include <stdint.h>

namespace posenc::kernels::sincos {

// 128 bits: an extension that every compiler of these instruction sets has.
__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UWide;

// w_k = scale * [pi] * base^(-(first + k*step)/denominator), k = 0..count-1; the entry is sin or
// cos of position * w_k, all in real arithmetic.
//   interleaved, D dims, shift 0: step 2, denominator D;   halves of n, shift 1: step 1,
//   denominator n - 1.
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

// Where the entries of a row stand, in elements. Row r starts at data + r * row_stride.
//   interleaved: sin 0,2  cos 1,2     halves: sin 0,1  cos n,1     planes: cos_offset = the size of
//   the first plane
struct RowLayout {
  int64_t sin_offset = 0, sin_stride = 2, sin_count = 0;
  int64_t cos_offset = 1, cos_stride = 2, cos_count = 0;
  int64_t zero_column = -1;  // a column of zeros, or none
  int64_t row_stride = 0;
};

// Rows [0, n) have position start + r*step, or integers[r], or reals[r]. All |position| < 2^31 for
// the fast path; anything finite is right.
struct Positions {
  int64_t start = 0;
  int64_t step = 1;
  const int64_t* integers = nullptr;
  const double* reals = nullptr;
};

// The frequencies as the kernels read them: one array each, `padded` entries (a multiple of kLanes,
// zeros beyond count).
constexpr int64_t kLanes = 16;
constexpr int kPieces = 6;
struct FrequencyView {
  int64_t count = 0;
  int64_t padded = 0;
  bool guarded = false;  // some array below holds a NaN, see there
  // The centred fraction of w/(2 pi) as a sum of six parts: five of 20 bits, so that a part times a
  // whole position below 2^33 is exact in float64, and a float64 rest.
  const double* piece[kPieces] = {};
  const double* rest = nullptr;   // pieces 2..5 in one float64
  const double* reach = nullptr;  // upper bound of 2 pi |fraction|
  // w/(2 pi), not reduced, as a double-double: for the fractional part of real positions.
  const double* turns_high = nullptr;
  const double* turns_low = nullptr;
  const double* turns_reach = nullptr;  // upper bound of 2 pi |w/(2 pi)|
  const double* part_guard = nullptr;   // 0, or NaN where the fraction is not w itself: row_pair
                                        // cannot take a fractional part then
  // A NaN in any of these makes the row's entry a NaN, which no bound decides: the Ziv fallback
  // computes it. So what is out of the kernels' range is slow, never wrong.
};

// Error bounds, absolute, of one float64 or double-double row product; derived in sincos_rows.cpp
// and sincos_rows_pair.cpp. The sine's bound shrinks with the angle.
constexpr double kBound64 = 0x1p-48;
constexpr double kBoundPair = 0x1p-96;

}  // namespace posenc::kernels::sincos
