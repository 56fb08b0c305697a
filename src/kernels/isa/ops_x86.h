// The operations of SSE2, AVX2 and AVX-512 that vector types cannot express.
// posenc-budget: three instruction sets
#pragma once
#if defined(__AVX512F__) && !defined(__clang__)  // gcc 12's own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "kernels/isa/half_emulation.h"
#include "kernels/isa/vectors.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

// a * b + c. Contraction is off in these files: products are fused only where this is called.
POSENC_INLINE Floats fma(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
#if defined(__AVX512F__)
POSENC_INLINE Floats8 fma(Floats8 a, Floats8 b, Floats8 c) { return _mm256_fmadd_ps(a, b, c); }
#elif !defined(__AVX2__)
POSENC_INLINE Floats8 fma(Floats8 a, Floats8 b, Floats8 c) { return a * b + c; }
#endif
POSENC_INLINE Doubles fma(Doubles a, Doubles b, Doubles c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}

// a - b c, where the product is exact: fused or not, the same bits.
POSENC_INLINE Floats minus_product(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return _mm512_fnmadd_ps(b, c, a);
#elif defined(__AVX2__)
  return _mm256_fnmadd_ps(b, c, a);
#else
  return a - b * c;
#endif
}

// Has x in a register from here on: gcc would otherwise read a value that several operations use
// from memory again for each of them.
POSENC_INLINE void keep_in_register(Floats& x) { asm("" : "+v"(x)); }

POSENC_INLINE Floats8 square_root(Floats8 x) {
#if defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#else
  __m128 half[2];
  memcpy(half, &x, sizeof half);
  half[0] = _mm_sqrt_ps(half[0]);
  half[1] = _mm_sqrt_ps(half[1]);
  return load<Floats8>(half);
#endif
}

// Lane-wise maximum and minimum; b where either is NaN, or both are zero.
POSENC_INLINE Floats maximum(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#else
  return _mm_max_ps(a, b);
#endif
}
POSENC_INLINE Floats minimum(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_min_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_min_ps(a, b);
#else
  return _mm_min_ps(a, b);
#endif
}
// y 2^n for y in (0.5, 2) and integers n from -125 to 126, exactly; NaN if y is.
POSENC_INLINE Floats times_power(Floats y, Floats n) {
#if defined(__AVX512F__)
  return _mm512_scalef_ps(y, n);
#else
  return y * power_of_two(n);
#endif
}

// Whether a > b: a bit for each lane, that of the first one being the lowest.
POSENC_INLINE uint64_t greater(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
#elif defined(__AVX2__)
  return static_cast<uint64_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
#else
  return static_cast<uint64_t>(_mm_movemask_ps(_mm_cmpgt_ps(a, b)));
#endif
}
// Whether all bits are zero.
POSENC_INLINE bool is_zero(Words x) {
#if defined(__AVX512F__)
  const __m512i v = reinterpret_cast<__m512i>(x);
  return _mm512_test_epi32_mask(v, v) == 0;
#elif defined(__AVX2__)
  const __m256i v = reinterpret_cast<__m256i>(x);
  return _mm256_testz_si256(v, v) != 0;
#else
  return _mm_movemask_epi8(reinterpret_cast<__m128i>(reinterpret_cast<Ints>(x) == 0)) == 0xffff;
#endif
}
// The sign bits of a vector of 64-bit numbers.
POSENC_INLINE uint64_t signs(Longs x) {
#if defined(__AVX512F__)
  return _mm512_movepi64_mask(reinterpret_cast<__m512i>(x));
#elif defined(__AVX2__)
  return static_cast<uint64_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(x)));
#else
  return static_cast<uint64_t>(_mm_movemask_pd(reinterpret_cast<__m128d>(x)));
#endif
}

// Lane i of the result: the sum of lanes i, i + 4, i + 8 and i + 12, as (0 + 8) + (4 + 12).
POSENC_INLINE Floats4 fold(const Wide& w) {
#if defined(__AVX2__)
#if defined(__AVX512F__)
  const Floats8 half = __builtin_shufflevector(w.part[0], w.part[0], 0, 1, 2, 3, 4, 5, 6, 7) +
                       __builtin_shufflevector(w.part[0], w.part[0], 8, 9, 10, 11, 12, 13, 14, 15);
#else
  const Floats8 half = w.part[0] + w.part[1];
#endif
  return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
         __builtin_shufflevector(half, half, 4, 5, 6, 7);
#else
  return (w.part[0] + w.part[2]) + (w.part[1] + w.part[3]);
#endif
}
POSENC_INLINE void transpose4(Floats4& a, Floats4& b, Floats4& c, Floats4& d) {
  _MM_TRANSPOSE4_PS(a, b, c, d);
}
#if defined(__AVX512F__)
// transpose4() in each quarter of the vectors.
POSENC_INLINE void transpose_quarters(Floats* x) {
  const __m512 ab0 = _mm512_unpacklo_ps(x[0], x[1]), ab2 = _mm512_unpackhi_ps(x[0], x[1]);
  const __m512 cd0 = _mm512_unpacklo_ps(x[2], x[3]), cd2 = _mm512_unpackhi_ps(x[2], x[3]);
  x[0] = _mm512_shuffle_ps(ab0, cd0, 0x44);
  x[1] = _mm512_shuffle_ps(ab0, cd0, 0xee);
  x[2] = _mm512_shuffle_ps(ab2, cd2, 0x44);
  x[3] = _mm512_shuffle_ps(ab2, cd2, 0xee);
}
#elif defined(__AVX2__)
POSENC_INLINE void transpose_halves(Floats* x) {
  const __m256 ab0 = _mm256_unpacklo_ps(x[0], x[1]), ab2 = _mm256_unpackhi_ps(x[0], x[1]);
  const __m256 cd0 = _mm256_unpacklo_ps(x[2], x[3]), cd2 = _mm256_unpackhi_ps(x[2], x[3]);
  x[0] = _mm256_shuffle_ps(ab0, cd0, 0x44);
  x[1] = _mm256_shuffle_ps(ab0, cd0, 0xee);
  x[2] = _mm256_shuffle_ps(ab2, cd2, 0x44);
  x[3] = _mm256_shuffle_ps(ab2, cd2, 0xee);
}
#endif
// Lane i of vector j becomes lane j of vector i.
POSENC_INLINE void transpose(Floats (&x)[kFloats]) {
#if defined(__AVX512F__)
#pragma GCC unroll 4
  for (int i = 0; i < kFloats; i += 4) transpose_quarters(x + i);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 ab0 = _mm512_shuffle_f32x4(x[i], x[i + 4], 0x88);
    const __m512 ab1 = _mm512_shuffle_f32x4(x[i], x[i + 4], 0xdd);
    const __m512 cd0 = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x88);
    const __m512 cd1 = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xdd);
    x[i] = _mm512_shuffle_f32x4(ab0, cd0, 0x88);
    x[i + 4] = _mm512_shuffle_f32x4(ab1, cd1, 0x88);
    x[i + 8] = _mm512_shuffle_f32x4(ab0, cd0, 0xdd);
    x[i + 12] = _mm512_shuffle_f32x4(ab1, cd1, 0xdd);
  }
#elif defined(__AVX2__)
  transpose_halves(x);
  transpose_halves(x + 4);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256 a = x[i], b = x[i + 4];
    x[i] = _mm256_permute2f128_ps(a, b, 0x20);
    x[i + 4] = _mm256_permute2f128_ps(a, b, 0x31);
  }
#else
  transpose4(x[0], x[1], x[2], x[3]);
#endif
}
// The even and the odd lanes of a and b, joined.
POSENC_INLINE Floats even_lanes(Floats a, Floats b) {
#if defined(__AVX512F__)
  const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(a, at, b);
#elif defined(__AVX2__)
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}
POSENC_INLINE Floats odd_lanes(Floats a, Floats b) {
#if defined(__AVX512F__)
  const __m512i at = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_ps(a, at, b);
#elif defined(__AVX2__)
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
  return __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
}
// Rounded to float32: an element of a, one of b and so on.
POSENC_INLINE Floats alternating(Doubles a, Doubles b) {
#if defined(__AVX512F__)
  const __m512i at = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return _mm512_permutex2var_ps(_mm512_castps256_ps512(to_floats(a)), at,
                                _mm512_castps256_ps512(to_floats(b)));
#elif defined(__AVX2__)
  return __builtin_shufflevector(to_floats(a), to_floats(b), 0, 4, 1, 5, 2, 6, 3, 7);
#else
  return __builtin_shufflevector(to_floats(a), to_floats(b), 0, 2, 1, 3);
#endif
}
// The low halves of a's and b's bits, in any order.
POSENC_INLINE Words low_words(Doubles a, Doubles b) {
#if defined(__AVX512F__)
  const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return reinterpret_cast<Words>(
      _mm512_permutex2var_epi32(_mm512_castpd_si512(a), at, _mm512_castpd_si512(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Words>(
      _mm256_shuffle_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), 0x88));
#else
  return reinterpret_cast<Words>(
      _mm_shuffle_ps(reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b), 0x88));
#endif
}
// Neighbours change places.
POSENC_INLINE Floats swapped(Floats x) {
#if defined(__AVX512F__)
  return _mm512_permute_ps(x, 0xb1);
#elif defined(__AVX2__)
  return _mm256_permute_ps(x, 0xb1);
#else
  return _mm_shuffle_ps(x, x, 0xb1);
#endif
}
POSENC_INLINE Doubles swapped(Doubles x) {
#if defined(__AVX512F__)
  return _mm512_permute_pd(x, 0x55);
#elif defined(__AVX2__)
  return _mm256_permute_pd(x, 0x5);
#else
  return _mm_shuffle_pd(x, x, 1);
#endif
}

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

// float16: F16C has instructions for it, which AVX2 is required to come with.
#if defined(__AVX512F__)
POSENC_INLINE Floats read_half(const uint16_t* from) {
  return reinterpret_cast<Floats>(_mm512_cvtph_ps(load<__m256i>(from)));
}
POSENC_INLINE void write_half(uint16_t* to, Floats x) {
  store(to, _mm512_cvtps_ph(reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEAREST_INT));
}
POSENC_INLINE Floats round_to_half(Floats x) {
  return reinterpret_cast<Floats>(
      _mm512_cvtph_ps(_mm512_cvtps_ph(reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEAREST_INT)));
}
#elif defined(__AVX2__)
POSENC_INLINE Floats read_half(const uint16_t* from) {
  return reinterpret_cast<Floats>(_mm256_cvtph_ps(load<__m128i>(from)));
}
POSENC_INLINE void write_half(uint16_t* to, Floats x) {
  store(to, _mm256_cvtps_ph(reinterpret_cast<__m256>(x), _MM_FROUND_TO_NEAREST_INT));
}
POSENC_INLINE Floats round_to_half(Floats x) {
  return reinterpret_cast<Floats>(
      _mm256_cvtph_ps(_mm256_cvtps_ph(reinterpret_cast<__m256>(x), _MM_FROUND_TO_NEAREST_INT)));
}
#else
POSENC_INLINE Floats read_half(const uint16_t* from) { return decode_half(widen(from)); }
POSENC_INLINE void write_half(uint16_t* to, Floats x) { narrow(to, encode_half(x)); }
POSENC_INLINE Floats round_to_half(Floats x) { return decode_half(encode_half(x)); }
#endif

// Rounds float32 bits to bfloat16, to nearest even, in their high halves; what is below is left
// over. write_high() stores the high halves of both, alternately.
POSENC_INLINE Words rounded_up(Words u) {
#if defined(__AVX512F__)
  const __m512i v = reinterpret_cast<__m512i>(u);
  const __mmask16 odd = _mm512_test_epi32_mask(v, _mm512_set1_epi32(1 << 16));
  const __m512i up = _mm512_add_epi32(v, _mm512_set1_epi32(0x7fff));
  return reinterpret_cast<Words>(_mm512_mask_sub_epi32(up, odd, up, _mm512_set1_epi32(-1)));
#else
  return u + 0x7fff + (u >> 16 & 1);
#endif
}
POSENC_INLINE void write_high(uint16_t* to, Words even, Words odd) {
#if defined(__AVX512F__)
  store(to, _mm512_mask_blend_epi16(0xaaaaaaaa, reinterpret_cast<__m512i>(even >> 16),
                                    reinterpret_cast<__m512i>(odd)));
#elif defined(__AVX2__)
  store(to, _mm256_blend_epi16(reinterpret_cast<__m256i>(even >> 16),
                               reinterpret_cast<__m256i>(odd), 0xaa));
#else
  store(to, even >> 16 | (odd & 0xffff0000));
#endif
}

// Stores 16 bytes, or a line, with non-temporal stores, which need not read them into the caches
// before they are overwritten. Both addresses are aligned to the size. stream_end() comes after the
// last of them, before another thread reads what was stored.
POSENC_INLINE void stream16(void* to, const void* from) {
  _mm_stream_si128(static_cast<__m128i*>(to), _mm_load_si128(static_cast<const __m128i*>(from)));
}
POSENC_INLINE void stream_line(void* to, const void* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_load_si512(from));
#else
  for (int i = 0; i < kLineBytes / 16; ++i)
    _mm_stream_si128(static_cast<__m128i*>(to) + i,
                     _mm_load_si128(static_cast<const __m128i*>(from) + i));
#endif
}
POSENC_INLINE void stream_end() { _mm_sfence(); }

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
