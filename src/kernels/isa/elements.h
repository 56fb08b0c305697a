// The element types: how a vector of each is loaded, rounded and stored. Included by the kernel
// sources, inside the instruction set's own namespace.
//
// bfloat16 is a float32 without its low 16 bits: rounding to nearest even is an integer addition.
// float16 has the F16C instructions from AVX2 on; for SSE2 they are emulated.
#pragma once
#include "kernels/isa/embed_lanes.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

POSENC_INLINE Words select(Ints condition, Words yes, Words no) {
  const Words mask = reinterpret_cast<Words>(condition);
  return (yes & mask) | (no & ~mask);
}
POSENC_INLINE Words bits_of(Floats x) { return reinterpret_cast<Words>(x); }
POSENC_INLINE Floats floats_of(Words x) { return reinterpret_cast<Floats>(x); }

// Widens 16-bit integers to 32-bit lanes; narrow() stores the low 16 bits of each lane.
POSENC_INLINE Words widen(const uint16_t* from) {
#if defined(__AVX512F__)
  return reinterpret_cast<Words>(_mm512_cvtepu16_epi32(load<__m256i>(from)));
#elif defined(__AVX2__)
  return reinterpret_cast<Words>(_mm256_cvtepu16_epi32(load<__m128i>(from)));
#else
  return reinterpret_cast<Words>(
      _mm_unpacklo_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), __m128i{}));
#endif
}
POSENC_INLINE void narrow(uint16_t* to, Words x) {
#if defined(__AVX512F__)
  store(to, _mm512_cvtepi32_epi16(reinterpret_cast<__m512i>(x)));
#elif defined(__AVX2__)
  const __m256i v = reinterpret_cast<__m256i>(x);
  store(to, _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
#else
  // packs saturates as signed: sign-extend the low 16 bits first
  const __m128i v = _mm_srai_epi32(_mm_slli_epi32(reinterpret_cast<__m128i>(x), 16), 16);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi32(v, v));
#endif
}

// Multiplication and addition in one element type, and where they round.
template <typename T, typename V>
struct Plain {  // float32, float64
  using Stored = T;
  using Real = T;
  using Vector = V;
  static constexpr int kLanes = sizeof(V) / sizeof(T);
  static POSENC_INLINE V broadcast(T x) { return x + V{}; }
  static POSENC_INLINE V read(const T* from) { return load<V>(from); }
  static POSENC_INLINE void write(T* to, V x) { store(to, x); }
  static POSENC_INLINE V round(V x) { return x; }
  static POSENC_INLINE V round_any(V x) { return x; }
};
using Float32 = Plain<float, Floats>;
using Float64 = Plain<double, Doubles>;

struct BFloat16 {
  using Stored = uint16_t;
  using Real = float;
  using Vector = Floats;
  static constexpr int kLanes = kFloats;
  static POSENC_INLINE Floats broadcast(float x) { return x + Floats{}; }
  static POSENC_INLINE Floats read(const uint16_t* from) { return floats_of(widen(from) << 16); }
  // The values are already rounded, so a shift is enough.
  static POSENC_INLINE void write(uint16_t* to, Floats x) { narrow(to, bits_of(x) >> 16); }
  // For sums and products of bfloat16 values: their NaNs have no low bits set, so that the addition
  // cannot carry a NaN into another number.
  static POSENC_INLINE Floats round(Floats x) {
    const Words u = bits_of(x);
    return floats_of((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000);
  }
  static POSENC_INLINE Floats round_any(Floats x) {
    return floats_of(select(x == x, bits_of(round(x)), Words{} + 0x7fc00000));
  }
};

// The same, two vectors at a time, with even and odd elements apart, as they lie in 32-bit words:
// widening is then a shift for the even and a mask for the odd ones, and so is packing.
struct Pair {
  Floats even, odd;
};
POSENC_INLINE Pair operator*(Pair a, Pair b) { return {a.even * b.even, a.odd * b.odd}; }
POSENC_INLINE Pair operator+(Pair a, Pair b) { return {a.even + b.even, a.odd + b.odd}; }
POSENC_INLINE Pair spread(uint64_t bits, Pair factor) {
  Ints even;
  for (int i = 0; i < kFloats; ++i) even[i] = static_cast<int32_t>(1u << (2 * i));
  const Ints every = static_cast<int32_t>(bits) + Ints{};
  const Ints at_even = (every & even) != 0, at_odd = (every & (even << 1)) != 0;
  return {reinterpret_cast<Floats>(at_even & reinterpret_cast<Ints>(factor.even)),
          reinterpret_cast<Floats>(at_odd & reinterpret_cast<Ints>(factor.odd))};
}

struct BFloat16Pairs {
  using Stored = uint16_t;
  using Real = float;
  using Vector = Pair;
  static constexpr int kLanes = 2 * kFloats;
  static POSENC_INLINE Pair broadcast(float x) { return {x + Floats{}, x + Floats{}}; }
  static POSENC_INLINE Pair read(const uint16_t* from) {
    const Words u = load<Words>(from);
    return {floats_of(u << 16), floats_of(u & 0xffff0000)};
  }
  static POSENC_INLINE void write(uint16_t* to, Pair x) {
    store(to, bits_of(x.even) >> 16 | (bits_of(x.odd) & 0xffff0000));
  }
  static POSENC_INLINE Pair round(Pair x) {
    return {BFloat16::round(x.even), BFloat16::round(x.odd)};
  }
  static POSENC_INLINE Pair round_any(Pair x) {
    return {BFloat16::round_any(x.even), BFloat16::round_any(x.odd)};
  }
};

struct Float16 {
  using Stored = uint16_t;
  using Real = float;
  using Vector = Floats;
  static constexpr int kLanes = kFloats;
  static POSENC_INLINE Floats broadcast(float x) { return x + Floats{}; }
#if defined(__AVX512F__)
  static POSENC_INLINE Floats read(const uint16_t* from) {
    return reinterpret_cast<Floats>(_mm512_cvtph_ps(load<__m256i>(from)));
  }
  static POSENC_INLINE void write(uint16_t* to, Floats x) {
    store(to, _mm512_cvtps_ph(reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEAREST_INT));
  }
  static POSENC_INLINE Floats round(Floats x) {
    return reinterpret_cast<Floats>(
        _mm512_cvtph_ps(_mm512_cvtps_ph(reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEAREST_INT)));
  }
#elif defined(__F16C__)
  static POSENC_INLINE Floats read(const uint16_t* from) {
    return reinterpret_cast<Floats>(_mm256_cvtph_ps(load<__m128i>(from)));
  }
  static POSENC_INLINE void write(uint16_t* to, Floats x) {
    store(to, _mm256_cvtps_ph(reinterpret_cast<__m256>(x), _MM_FROUND_TO_NEAREST_INT));
  }
  static POSENC_INLINE Floats round(Floats x) {
    return reinterpret_cast<Floats>(
        _mm256_cvtph_ps(_mm256_cvtps_ph(reinterpret_cast<__m256>(x), _MM_FROUND_TO_NEAREST_INT)));
  }
#else
  static POSENC_INLINE Floats decode(Words h) {
    const Words m = (h & 0x7fff) << 13, sign = (h & 0x8000) << 16;
    const Words normal = m + (112u << 23);
    const Words special = m | 0x7f800000;  // infinity and NaN
    const Words small =
        bits_of(__builtin_convertvector(reinterpret_cast<Ints>(h & 0x3ff), Floats) * 0x1p-24f);
    const Words exponent = h & 0x7c00;
    const Words size = select(exponent == 0, small, select(exponent == 0x7c00, special, normal));
    return floats_of(size | sign);
  }
  static POSENC_INLINE Words encode(Floats x) {
    const Words m = bits_of(x) & 0x7fffffff, sign = bits_of(x) >> 16 & 0x8000;
    const Words normal = (m + 0xfff + (m >> 13 & 1) - (112u << 23)) >> 13;
    // Below 2^-14: adding 1/2 aligns the last place of the sum with the subnormal ulp, 2^-24.
    const Words small = bits_of(floats_of(m) + 0.5f) - (126u << 23);
    const Words finite = select(m < (113u << 23), small, normal);
    const Words large = select(m > 0x7f800000, Words{} + 0x7e00, Words{} + 0x7c00);
    return select(m < 0x47800000, finite, large) | sign;  // 2^16 and above is infinity
  }
  static POSENC_INLINE Floats read(const uint16_t* from) { return decode(widen(from)); }
  static POSENC_INLINE void write(uint16_t* to, Floats x) { narrow(to, encode(x)); }
  static POSENC_INLINE Floats round(Floats x) { return decode(encode(x)); }
#endif
  static POSENC_INLINE Floats round_any(Floats x) { return round(x); }
};

}  // namespace
}  // namespace posenc::kernels::embed::POSENC_ISA
