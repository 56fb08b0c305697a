// Sums of products of bfloat16 numbers in pairs (bfloat16.h): the same functions for each
// instruction set. Included by the kernel sources, inside the instruction set's own namespace.
//
//   kPairSums         how many sums the registers hold in addition to the operands
//   Pairs             a pair of numbers in each lane, prepared for several products
//   add_pairs(sum, w, x)  sum += the products of each lane's pairs, the second first
//   round_wide(x)     sixteen floats, rounded
//   rounded_pairs(a, b)  the pairs of a's and b's lanes, rounded
//   round_rows(...)   rows of floats, rounded, with a zero after an odd number
//   Flushing          while it exists, results below 2^-126 are zero, but for the generic set
//   flushed(x)        what remains to be done for that by a set whose processor does not
#pragma once
#include "kernels/bfloat16.h"
#include "kernels/isa/by_sixteen.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// Sixteen numbers in bfloat16.
typedef uint16_t Sixteen __attribute__((vector_size(32)));

// Zero below 2^-126, where no mode of the processor does it.
POSENC_INLINE Floats flushed(Floats x) {
#if defined(POSENC_GENERIC)
  const Words bits = bits_of(x);
  return floats_of(select((bits & 0x7fffffff) < 0x00800000, bits & 0x80000000, bits));
#else
  return x;
#endif
}

#if defined(__AVX512BF16__)

constexpr int kPairSums = 24;
struct Pairs {
  __m512bh both;
};
template <typename Memory>
POSENC_INLINE Pairs load_pairs(const Memory* from) {
  return {load<__m512bh>(from)};
}
template <typename Memory>
POSENC_INLINE Pairs broadcast_pair(const Memory* from) {
  return {(__m512bh)_mm512_set1_epi32(load<int32_t>(from))};
}
POSENC_INLINE void add_pairs(Floats& sum, const Pairs& w, const Pairs& x) {
  sum = _mm512_dpbf16_ps(sum, w.both, x.both);
}
POSENC_INLINE Sixteen round_wide(const Wide& x) {
  return reinterpret_cast<Sixteen>(_mm512_cvtneps_pbh(x.part[0]));
}
POSENC_INLINE Words rounded_pairs(Floats a, Floats b) {
  const __m512i at = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                                      23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return reinterpret_cast<Words>(_mm512_permutexvar_epi16(at, (__m512i)_mm512_cvtne2ps_pbh(b, a)));
}

#else

constexpr int kPairSums = kRegisters == 32 ? 16 : 8;
struct Pairs {
  Floats odd, even;
};
POSENC_INLINE Pairs pairs_of(Words both) {
  return {floats_of(both & 0xffff0000), floats_of(both << 16)};
}
template <typename Memory>
POSENC_INLINE Pairs load_pairs(const Memory* from) {
  return pairs_of(load<Words>(from));
}
template <typename Memory>
POSENC_INLINE Pairs broadcast_pair(const Memory* from) {
  return pairs_of(load<uint32_t>(from) + Words{});
}
POSENC_INLINE void add_pairs(Floats& sum, const Pairs& w, const Pairs& x) {
  sum = flushed(fma(w.odd, x.odd, sum));
  sum = flushed(fma(w.even, x.even, sum));
}
// In the low halves.
POSENC_INLINE Words rounded(Floats x) {
  const Words bits = bits_of(x), magnitude = bits & 0x7fffffff;
  const Words near = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const Words number = select(magnitude < 0x00800000, bits >> 31 << 15, near);
  return select(magnitude > 0x7f800000, Words{} + 0x7fc0, number);
}
POSENC_INLINE Sixteen round_wide(const Wide& x) {
  BFloat16 to[kWide];
  for (int part = 0; part < kParts; ++part) narrow(to + part * kFloats, rounded(x.part[part]));
  return load<Sixteen>(to);
}
POSENC_INLINE Words rounded_pairs(Floats a, Floats b) { return rounded(a) | rounded(b) << 16; }

#endif

POSENC_INLINE void round_rows(const float* x, int64_t stride, int64_t width, int64_t rows,
                              BFloat16* to) {
  const int64_t elements = bfloat16::row_elements(width);
  for (int64_t row = 0; row < rows; ++row, x += stride, to += elements) {
    by_sixteen(width, [&](int64_t i, int64_t n) {
      const Sixteen sixteen = round_wide(read(x + i, n));
      if (n == kWide) return store(to + i, sixteen);
      memcpy(to + i, &sixteen, sizeof(BFloat16) * static_cast<size_t>(elements - i));
    });
  }
}

// The compiler may move arithmetic across this, so what it is for is in a function that is not
// inlined.
class Flushing {
 public:
#if defined(POSENC_GENERIC)
  Flushing() {}
  ~Flushing() {}
#elif defined(__x86_64__)
  Flushing() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kZeros); }
  ~Flushing() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kZeros = 0x8040;  // results and operands
  unsigned before_;
#else
  Flushing() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(before_ | kZeros) : "memory");
  }
  ~Flushing() { asm volatile("msr fpcr, %0" : : "r"(before_) : "memory"); }

 private:
  static constexpr uint64_t kZeros = 1 << 24;
  uint64_t before_;
#endif
};

}  // namespace
}  // namespace posenc::kernels::inference::POSENC_ISA
