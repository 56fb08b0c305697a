// Float64 rows, and float32, bfloat16 and float16 entries as products of two rows. Compiled once
// per instruction set, with -ffp-contract=off.
//
// Error of a row, with u = 2^-53. The fraction of whole*piece is exact for the first two pieces (20
// + 33 bits), `rest` adds at most 3u*2^-10 turns (its own rounding and that of its product), the
// sum u/8: together below u in radians. The polynomials (Taylor to x^17, x^16 on 1/8 turn:
// remainder below 2^-58) add less than 4u. That makes 5u per component; for angles below 1/8 turn
// the sine's error is below 5u times the angle. A product of two rows carries over 2*5*sqrt(2)u and
// adds 2u of rounding: < 17u < 2^-48 = 32u; for small angles 24u times the sum of both: kBound64 *
// min(1, sum). The fractional part of a real position adds 2u, relative, through an error-free
// product.
// Fused multiply-add is used explicitly if the set has it: it only lowers these errors. The last
// bits of the rows then differ between sets; the entries do not, since they are correctly rounded.
// posenc-budget: the writer with one conversion is kept next to the plain one that defines it
#include "kernels/isa/half_formats.h"
#include "kernels/isa/round_store.h"
#include "kernels/isa/sincos_coefficients.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::sincos::POSENC_ISA {
namespace {

// sin and cos of 2 pi x for |x| <= 1/2: reduced to 1/8 turn by exact steps, then swapped and
// negated without branches.
POSENC_INLINE void sin_cos(double base, double small, double* sine, double* cosine) {
  const double quarter = nearest(4 * base);
  const double x = (base - 0.25 * quarter) + small;
  const double z = x * x;
  double s = kSin[8];
  double c = kCos[8];
#pragma GCC unroll 16
  for (int j = 7; j >= 0; --j) {
    s = multiply_add(s, z, kSin[j]);
    c = multiply_add(c, z, kCos[j]);
  }
  s *= x;
  const double square = quarter * quarter;
  const double sign = square == 4.0 ? -1.0 : 1.0;
  const bool odd = square == 1.0;
  *sine = odd ? quarter * c : sign * s;
  *cosine = odd ? -quarter * s : sign * c;
}

void row(const FrequencyView& f, double integer, double part, double* __restrict out) {
  const double* __restrict first = f.piece[0];
  const double* __restrict second = f.piece[1];
  const double* __restrict rest = f.rest;
  const int64_t n = f.padded & ~(kLanes - 1);
  double* __restrict cosine = out;
  double* __restrict sine = out + n;
  if (part == 0.0) {
    for (int64_t k = 0; k < n; ++k) {
      const double a = integer * first[k];
      const double b = integer * second[k];
      double base = (a - nearest(a)) + (b - nearest(b));
      base -= nearest(base);
      sin_cos(base, integer * rest[k], sine + k, cosine + k);
    }
    return;
  }
  // part * turns as an error-free product (Dekker's, without fused instructions); the whole turns
  // of its high half cancel exactly.
  const double* __restrict high = f.turns_high;
  const double* __restrict low = f.turns_low;
  const double part_cut = part * 134217729.0;
  const double part_high = part_cut - (part_cut - part);
  const double part_low = part - part_high;
  for (int64_t k = 0; k < n; ++k) {
    const double cut = high[k] * 134217729.0;
    const double h = cut - (cut - high[k]);
    const double l = high[k] - h;
    const double product = part * high[k];
    const double error =
        ((part_high * h - product) + part_high * l + part_low * h) + part_low * l + part * low[k];
    const double a = integer * first[k];
    const double b = integer * second[k];
    double base = (a - nearest(a)) + (b - nearest(b));
    base -= nearest(base);
    // A sum with its exact error: what the base cannot hold is added to the small part.
    const double turns = product - nearest(product);
    double sum = base + turns;
    const double back = sum - base;
    const double lost = (base - (sum - back)) + (turns - back);
    sum -= nearest(sum);
    sin_cos(sum, integer * rest[k] + lost + error, sine + k, cosine + k);
  }
}

void bounds(const double* __restrict reach, int64_t padded, double span, double bound,
            double* __restrict out) {
  for (int64_t k = 0; k < (padded & ~(kLanes - 1)); ++k) {
    const double angle = reach[k] * span;
    out[k] = bound * (angle < 1.0 ? angle : 1.0);
  }
}

struct Entries {
  alignas(64) float sine[kBlock], cosine[kBlock];
};

// Products of a block. An entry is decided if value - bound and value + bound round to the same
// float; returns whether all are. (A NaN is never decided.)
template <int n>
POSENC_INLINE bool multiply(const double* __restrict c1, const double* __restrict s1,
                            const double* __restrict c2, const double* __restrict s2,
                            const double* __restrict bound, double cos_bound,
                            Entries& __restrict to) {
  unsigned doubtful = 0;
  for (int i = 0; i < n; ++i) {
    const double s = multiply_add(s1[i], c2[i], c1[i] * s2[i]);
    const double c = multiply_add(c1[i], c2[i], -(s1[i] * s2[i]));
    const float s_high = static_cast<float>(s + bound[i]),
                c_high = static_cast<float>(c + cos_bound);
    const float s_low = static_cast<float>(s - bound[i]), c_low = static_cast<float>(c - cos_bound);
    to.sine[i] = s_high;
    to.cosine[i] = c_high;
    doubtful |= (s_low != s_high) | (c_low != c_high);
  }
  return doubtful == 0;
}

// The same with one conversion per entry, as conversions limit the AVX-512 version; its test may
// err only towards doubt. A float64 rounds to float32 by its low 29 bits; with |x| > 2^-12 the
// bound of 2^-48 is at most 2^16 units of its last place, so x is decided unless these bits are
// within 2^16 of 2^28. Interleaved: pairs (sine, cosine) go to `first`; else sines go to `first`,
// cosines to `second`.
constexpr bool kOnce = kBytes == 64;
template <bool interleaved>
POSENC_INLINE bool multiply_once(const double* c1, const double* s1, const double* c2,
                                 const double* s2, float* first, float* second) {
  const Words centre = Words{} + ((1u << 28) + (1u << 16)), field = Words{} + ((1u << 29) - 1);
  // Carries floats above 2^-12 into bit 30; not 2^-12 itself, to which smaller values round.
  const Words lift = Words{} + ((13u << 23) - 1);
  Words nearest_tie = field, sizes = ~Words{};
  for (int i = 0; i < kBlock; i += kDoubles) {
    const Doubles vc1 = load<Doubles>(c1 + i), vs1 = load<Doubles>(s1 + i);
    const Doubles vc2 = load<Doubles>(c2 + i), vs2 = load<Doubles>(s2 + i);
    const Doubles s = fma(vs1, vc2, vc1 * vs2), c = fma(vc1, vc2, -(vs1 * vs2));
    const Floats both = alternating(s, c);
    if (interleaved) {
      store(first + 2 * i, both);
    } else {
      store(first + i, to_floats(s));
      store(second + i, to_floats(c));
    }
    const Words distance = (low_words(s, c) + centre) & field;
    nearest_tie = nearest_tie < distance ? nearest_tie : distance;
    sizes &= bits_of(both) + lift;
  }
  const Words near = reinterpret_cast<Words>(nearest_tie < 1u << 17);
  return is_zero(near | (~sizes & 1u << 30));
}

// The same for a block with undecided entries, which are left to the Ziv fallback.
template <int n>
__attribute__((noinline)) void multiply_carefully(const RowsRequest& r, const double* __restrict c1,
                                                  const double* __restrict c2, int64_t from,
                                                  int64_t count, double position,
                                                  Entries& __restrict to) {
  const double* __restrict s1 = c1 + r.padded;
  const double* __restrict s2 = c2 + r.padded;
  const double* __restrict bound = r.sin_bound + from;
  const double cos_bound = r.cos_bound;
  float sin_low[n], cos_low[n];
  for (int i = 0; i < n; ++i) {
    const double s = multiply_add(s1[i], c2[i], c1[i] * s2[i]);
    const double c = multiply_add(c1[i], c2[i], -(s1[i] * s2[i]));
    sin_low[i] = static_cast<float>(s - bound[i]);
    cos_low[i] = static_cast<float>(c - cos_bound);
    to.sine[i] = static_cast<float>(s + bound[i]);
    to.cosine[i] = static_cast<float>(c + cos_bound);
  }
  unsigned doubtful = 0;
  for (int i = 0; i < n; ++i) doubtful |= (sin_low[i] != to.sine[i]) | (cos_low[i] != to.cosine[i]);
  for (int i = 0; doubtful != 0 && i < count; ++i) {
    if (sin_low[i] != to.sine[i])
      to.sine[i] =
          static_cast<float>(r.ziv_fallback(r.context, from + i, false, position, Format::Float32));
    if (cos_low[i] != to.cosine[i])
      to.cosine[i] =
          static_cast<float>(r.ziv_fallback(r.context, from + i, true, position, Format::Float32));
  }
}

template <int n>
void narrow(const RowsRequest& r, int64_t from, int64_t count, double position, bool cosine,
            const float* floats, uint16_t* __restrict out) {
  uint32_t x[n];
  memcpy(x, floats, sizeof x);
  uint32_t ties = 0;
  if (r.format == Format::BFloat16) {
    for (int i = 0; i < n; ++i) {
      out[i] = to_bfloat16(x[i]);
      ties |= bfloat16_tie(x[i]);
    }
  } else {
    for (int i = 0; i < n; ++i) {
      out[i] = to_float16(x[i]);
      ties |= float16_tie(x[i]);
    }
  }
  for (int i = 0; ties != 0 && i < count; ++i) {
    if (!(r.format == Format::BFloat16 ? bfloat16_tie(x[i]) : float16_tie(x[i]))) continue;
    const uint32_t exact = __builtin_bit_cast(
        uint32_t,
        static_cast<float>(r.ziv_fallback(r.context, from + i, cosine, position, r.format)));
    out[i] = r.format == Format::BFloat16 ? to_bfloat16(exact) : to_float16(exact);
  }
}

template <int n>
void write_block(const RowsRequest& r, int64_t row, int64_t from, int64_t count) {
  Entries entries;
  const double* const c1 = r.first + from;
  const double* const c2 = r.second + row * r.second_stride + from;
  const double position = r.position + static_cast<double>(row) * r.position_step;
  bool decided = false;
  if (kOnce && n == kBlock && r.quick) {
    float* const pairs =
        r.format == Format::Float32 && !r.stream ? pairs_at<float>(r, row, from) : nullptr;
    if (pairs != nullptr &&
        multiply_once<true>(c1, c1 + r.padded, c2, c2 + r.padded, pairs, nullptr))
      return;
    decided = pairs == nullptr && multiply_once<false>(c1, c1 + r.padded, c2, c2 + r.padded,
                                                       entries.sine, entries.cosine);
  } else {
    decided =
        multiply<n>(c1, c1 + r.padded, c2, c2 + r.padded, r.sin_bound + from, r.cos_bound, entries);
  }
  if (!decided) multiply_carefully<n>(r, c1, c2, from, count, position, entries);
  if (r.format == Format::Float32) {
    store_row(r, row, from, count, entries.sine, entries.cosine);
    return;
  }
  alignas(64) uint16_t sine[n], cosine[n];
  narrow<n>(r, from, count, position, false, entries.sine, sine);
  narrow<n>(r, from, count, position, true, entries.cosine, cosine);
  store_row(r, row, from, count, sine, cosine);
}

void write(const RowsRequest& r) {
  for_blocks(r, write_block<kBlock>, write_block<kLanes>);
  r.format == Format::Float32 ? zero_column<float>(r) : zero_column<uint16_t>(r);
}

}  // namespace

// Defined in sincos_rows_pair.cpp.
void row_pair(const FrequencyView& f, double integer, double part, double* out);
void write_pair(const RowsRequest& request);

const SincosKernels sincos_kernels = {row,   row_pair,   bounds,
                                      write, write_pair, [] { stream_end(); }};

}  // namespace posenc::kernels::sincos::POSENC_ISA
