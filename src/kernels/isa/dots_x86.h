// The operations of dots.h for SSE2, AVX2 and AVX-512, the last two with and without VNNI, whose
// one instruction multiplies unsigned with signed bytes and adds four products to a sum, without
// saturation.
#pragma once
#include "kernels/isa/ops.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

// What does not fit becomes the nearest that does.
POSENC_INLINE __m128i signed_bytes(const Ints (&x)[kParts]) {
#if defined(__AVX512F__)
  return _mm512_cvtsepi32_epi8(reinterpret_cast<__m512i>(x[0]));
#else
  __m128i four[4];
  memcpy(four, x, sizeof four);
  return _mm_packs_epi16(_mm_packs_epi32(four[0], four[1]), _mm_packs_epi32(four[2], four[3]));
#endif
}
POSENC_INLINE void narrow_weight(int8_t* to, const Ints (&q)[kParts]) {
  store(to, signed_bytes(q));
}

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)

constexpr int kOffset = 128;
POSENC_INLINE void narrow_x(uint8_t* to, const Ints (&q)[kParts]) {
#if defined(__AVX512F__)
  store(to, _mm512_cvtusepi32_epi8(reinterpret_cast<__m512i>(q[0])));
#else
  __m128i four[4];
  memcpy(four, q, sizeof four);
  store(to, _mm_packus_epi16(_mm_packs_epi32(four[0], four[1]), _mm_packs_epi32(four[2], four[3])));
#endif
}
constexpr int kMostSums = kRegisters / 4 * 3;
struct Sums {
  Ints sums;
};
struct Weights {
  Ints bytes;
};
struct Bytes4 {
  Ints bytes;
};

POSENC_INLINE Sums sums_from(Ints x) { return {x}; }
POSENC_INLINE Weights load_weights(const int8_t* from) { return {load<Ints>(from)}; }
POSENC_INLINE Bytes4 load_bytes4(const uint8_t* from) { return {load<int32_t>(from) - Ints{}}; }
POSENC_INLINE void add(Sums& s, const Weights& w, const Bytes4& x) {
#if defined(__AVX512VNNI__)
  s.sums = reinterpret_cast<Ints>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(s.sums),
                                                      reinterpret_cast<__m512i>(x.bytes),
                                                      reinterpret_cast<__m512i>(w.bytes)));
#else
  s.sums = reinterpret_cast<Ints>(_mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(s.sums),
                                                          reinterpret_cast<__m256i>(x.bytes),
                                                          reinterpret_cast<__m256i>(w.bytes)));
#endif
}
POSENC_INLINE Ints total(const Sums& s) { return s.sums; }

#elif defined(__AVX2__)

// w x = |w| (x sign(w)): unsigned times signed, in pairs of at most 2 * 127 * 127 < 2^15.
constexpr int kOffset = 0;
POSENC_INLINE void narrow_x(uint8_t* to, const Ints (&q)[kParts]) { store(to, signed_bytes(q)); }
constexpr int kMostSums = kRegisters == 32 ? 24 : 8;
struct Sums {
  Ints sums;
};
struct Bytes4 {
  Ints bytes;
};
POSENC_INLINE Sums sums_from(Ints x) { return {x}; }
POSENC_INLINE Bytes4 load_bytes4(const uint8_t* from) { return {load<int32_t>(from) - Ints{}}; }
POSENC_INLINE Ints total(const Sums& s) { return s.sums; }

#if defined(__AVX512F__)
struct Weights {
  __m512i magnitudes;
  __mmask64 negative;
};
POSENC_INLINE Weights load_weights(const int8_t* from) {
  const __m512i w = load<__m512i>(from);
  return {_mm512_abs_epi8(w), _mm512_movepi8_mask(w)};
}
POSENC_INLINE void add(Sums& s, const Weights& w, const Bytes4& x) {
  const __m512i of = reinterpret_cast<__m512i>(x.bytes);
  const __m512i with_sign = _mm512_mask_sub_epi8(of, w.negative, __m512i{}, of);
  const __m512i pairs = _mm512_maddubs_epi16(w.magnitudes, with_sign);
  s.sums += reinterpret_cast<Ints>(_mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#else
struct Weights {
  __m256i bytes, magnitudes;
};
POSENC_INLINE Weights load_weights(const int8_t* from) {
  const __m256i w = load<__m256i>(from);
  return {w, _mm256_abs_epi8(w)};
}
POSENC_INLINE void add(Sums& s, const Weights& w, const Bytes4& x) {
  const __m256i with_sign = _mm256_sign_epi8(reinterpret_cast<__m256i>(x.bytes), w.bytes);
  const __m256i pairs = _mm256_maddubs_epi16(w.magnitudes, with_sign);
  s.sums += reinterpret_cast<Ints>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
#endif

#else  // SSE2: products of 16-bit numbers

// Columns 0 and 1, and 2 and 3, each in two parts.
constexpr int kOffset = 0;
POSENC_INLINE void narrow_x(uint8_t* to, const Ints (&q)[kParts]) { store(to, signed_bytes(q)); }
constexpr int kMostSums = 12;
struct Sums {
  Ints first, last;
};
struct Weights {
  __m128i first, last;
};
struct Bytes4 {
  __m128i words;  // twice
};

POSENC_INLINE Sums sums_from(Ints x) {
  return {__builtin_shufflevector(x, Ints{}, 0, 4, 1, 5),
          __builtin_shufflevector(x, Ints{}, 2, 6, 3, 7)};
}
POSENC_INLINE Weights load_weights(const int8_t* from) {
  const __m128i w = load<__m128i>(from);
  return {_mm_srai_epi16(_mm_unpacklo_epi8(w, w), 8), _mm_srai_epi16(_mm_unpackhi_epi8(w, w), 8)};
}
POSENC_INLINE Bytes4 load_bytes4(const uint8_t* from) {
  const __m128i x = reinterpret_cast<__m128i>(load<int32_t>(from) - Ints{});
  return {_mm_srai_epi16(_mm_unpacklo_epi8(x, x), 8)};
}
POSENC_INLINE void add(Sums& s, const Weights& w, const Bytes4& x) {
  s.first += reinterpret_cast<Ints>(_mm_madd_epi16(w.first, x.words));
  s.last += reinterpret_cast<Ints>(_mm_madd_epi16(w.last, x.words));
}
POSENC_INLINE Ints total(const Sums& s) {
  return __builtin_shufflevector(s.first, s.last, 0, 2, 4, 6) +
         __builtin_shufflevector(s.first, s.last, 1, 3, 5, 7);
}

#endif

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
