// Rows of double-doubles ("pairs"), and float64 entries as products of two rows. Compiled once per
// instruction set, with -ffp-contract=off.
//
// Error, with v = 2^-106. Turns: five pieces times an integer position below 2^33 are exact, their
// sum keeps every lost bit, the sixth is below 2^-69 turns: 4v. Each pair product or sum has a
// relative error of at most 8v; Horner's last steps dominate: 40v per component of a row,
// 2*40*sqrt(2)v + 30v for the product of two: below 2^8 v = 2^-98. kBoundPair = 2^-96, times min(1,
// angle) for the sine as in sincos_rows.cpp. So about one entry in 2^42 is left to the Ziv
// fallback.
#include "kernels/isa/round_store.h"
#include "kernels/isa/sincos_coefficients.h"

namespace posenc::kernels::sincos::POSENC_ISA {
namespace {

struct Pair {
  double high, low;
};

POSENC_INLINE Pair two_sum(double a, double b) {
  const double s = a + b;
  const double back = s - a;
  return {s, (a - (s - back)) + (b - back)};
}
POSENC_INLINE Pair quick_two_sum(double a, double b) {  // requires |a| >= |b|
  const double s = a + b;
  return {s, b - (s - a)};
}
POSENC_INLINE Pair two_product(double a,
                               double b) {  // Dekker; products of the 26-bit halves are exact
  if constexpr (kHasFma) {
    const double product = a * b;
    return {product, __builtin_fma(a, b, -product)};
  }
  const double cut_a = a * 134217729.0, cut_b = b * 134217729.0;
  const double ah = cut_a - (cut_a - a), bh = cut_b - (cut_b - b);
  const double al = a - ah, bl = b - bh;
  const double p = a * b;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
POSENC_INLINE Pair operator+(Pair a, Pair b) {
  Pair s = two_sum(a.high, b.high);
  const Pair t = two_sum(a.low, b.low);
  s = quick_two_sum(s.high, s.low + t.high);
  return quick_two_sum(s.high, s.low + t.low);
}
POSENC_INLINE Pair operator*(Pair a, Pair b) {
  const Pair p = two_product(a.high, b.high);
  return quick_two_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
POSENC_INLINE Pair operator-(Pair a) { return {-a.high, -a.low}; }

// Adds x to `sum`; the rounding error of the high part goes to the low part.
POSENC_INLINE void gather(Pair& sum, double x) {
  const Pair s = two_sum(sum.high, x);
  sum = {s.high, sum.low + s.low};
}

// Terms below 2^-53 of the sum need no low part: 8 of the sine's and 9 of the cosine's have one.
POSENC_INLINE void sin_cos(Pair x, double quarter, Pair* sine, Pair* cosine) {
  const Pair z = x * x;
  double s_tail = kSin[13];
#pragma GCC unroll 16
  for (int j = 12; j >= 8; --j) s_tail = multiply_add(s_tail, z.high, kSin[j]);
  Pair s = {s_tail, 0.0};
#pragma GCC unroll 16
  for (int j = 7; j >= 0; --j) s = s * z + Pair{kSin[j], kSinLow[j]};
  s = s * x;
  double c_tail = kCos[14];
#pragma GCC unroll 16
  for (int j = 13; j >= 9; --j) c_tail = multiply_add(c_tail, z.high, kCos[j]);
  Pair c = {c_tail, 0.0};
#pragma GCC unroll 16
  for (int j = 8; j >= 0; --j) c = c * z + Pair{kCos[j], kCosLow[j]};
  const double square = quarter * quarter;
  const double sign = square == 4.0 ? -1.0 : 1.0;
  const bool odd = square == 1.0;
  sine->high = odd ? quarter * c.high : sign * s.high;
  sine->low = odd ? quarter * c.low : sign * s.low;
  cosine->high = odd ? -quarter * s.high : sign * c.high;
  cosine->low = odd ? -quarter * s.low : sign * c.low;
}

template <bool has_part>
void row_pair_of(const FrequencyView& f, double integer, double part, double* __restrict out) {
  const int64_t n = f.padded & ~(kLanes - 1);
  const double* __restrict p0 = f.piece[0];
  const double* __restrict p1 = f.piece[1];
  const double* __restrict p2 = f.piece[2];
  const double* __restrict p3 = f.piece[3];
  const double* __restrict p4 = f.piece[4];
  const double* __restrict p5 = f.piece[5];
  const double* __restrict guard = f.part_guard;
  double* __restrict c_high = out;
  double* __restrict s_high = out + n;
  double* __restrict c_low = out + 2 * n;
  double* __restrict s_low = out + 3 * n;
  // The products of the part's two halves (27 and 26 bits) and a piece are exact too. Pieces hold
  // the reduced fraction: `guard` is NaN where that is not w/(2 pi) itself.
  const double cut = part * 134217729.0;
  const double ph = cut - (cut - part);
  const double pl = part - ph;
  for (int64_t k = 0; k < n; ++k) {
    const double a = integer * p0[k], b = integer * p1[k];
    Pair sum = two_sum(a - nearest(a), b - nearest(b));
    gather(sum, integer * p2[k]);
    double tail = integer * p5[k];
    if (has_part) {
      gather(sum, ph * p0[k]);
      gather(sum, pl * p0[k]);
      gather(sum, ph * p1[k]);
      gather(sum, pl * p1[k]);
      gather(sum, ph * p2[k]);
      gather(sum, pl * p2[k]);
      gather(sum, part * p3[k]);
      tail += part * (p4[k] + guard[k]);
    }
    gather(sum, integer * p3[k]);
    gather(sum, integer * p4[k]);
    // The sum may exceed half a turn: the quarter is taken modulo 4, in -2..2.
    const double quarter = nearest(4 * sum.high);
    const double reduced = sum.high - 0.25 * quarter;
    Pair sine, cosine;
    sin_cos(two_sum(reduced, sum.low + tail), quarter - 4 * nearest(0.25 * quarter), &sine,
            &cosine);
    c_high[k] = cosine.high;
    s_high[k] = sine.high;
    c_low[k] = cosine.low;
    s_low[k] = sine.low;
  }
}

}  // namespace

void row_pair(const FrequencyView& f, double integer, double part, double* out) {
  part == 0.0 ? row_pair_of<false>(f, integer, part, out)
              : row_pair_of<true>(f, integer, part, out);
}

namespace {

struct Staged {
  alignas(64) double sin_low[kBlock], sin_high[kBlock], cos_low[kBlock], cos_high[kBlock];
};

template <int n>
inline bool multiply(const double* __restrict a, const double* __restrict b, int64_t padded,
                     const double* __restrict bound, double cos_bound, Staged& __restrict to) {
  for (int i = 0; i < n; ++i) {
    const Pair c1 = {a[i], a[2 * padded + i]}, s1 = {a[padded + i], a[3 * padded + i]};
    const Pair c2 = {b[i], b[2 * padded + i]}, s2 = {b[padded + i], b[3 * padded + i]};
    const Pair s = s1 * c2 + c1 * s2;
    const Pair c = c1 * c2 + -(s1 * s2);
    to.sin_low[i] = s.high + (s.low - bound[i]);
    to.sin_high[i] = s.high + (s.low + bound[i]);
    to.cos_low[i] = c.high + (c.low - cos_bound);
    to.cos_high[i] = c.high + (c.low + cos_bound);
  }
  uint64_t undecided = 0;
  for (int i = 0; i < n; ++i)
    undecided |= (to.sin_low[i] != to.sin_high[i]) | (to.cos_low[i] != to.cos_high[i]);
  return undecided != 0;
}

template <int n>
void write_pair_block(const RowsRequest& r, int64_t row, int64_t from, int64_t count) {
  Staged staged;
  const double position = r.position + static_cast<double>(row) * r.position_step;
  const bool undecided = multiply<n>(r.first + from, r.second + row * r.second_stride + from,
                                     r.padded, r.sin_bound + from, r.cos_bound, staged);
  for (int i = 0; undecided && i < count; ++i) {
    if (staged.sin_low[i] != staged.sin_high[i])
      staged.sin_high[i] = r.ziv_fallback(r.context, from + i, false, position, r.format);
    if (staged.cos_low[i] != staged.cos_high[i])
      staged.cos_high[i] = r.ziv_fallback(r.context, from + i, true, position, r.format);
  }
  store_row(r, row, from, count, staged.sin_high, staged.cos_high);
}

}  // namespace

void write_pair(const RowsRequest& r) {
  for_blocks(r, write_pair_block<kBlock>, write_pair_block<kLanes>);
  zero_column<double>(r);
}

}  // namespace posenc::kernels::sincos::POSENC_ISA
