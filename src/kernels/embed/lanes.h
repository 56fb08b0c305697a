// Vectors of the instruction set's own width, as gcc's vector types: +, * and & act lane by lane.
// Included by the kernel sources, inside the instruction set's own namespace: nothing here is
// shared between sets.
#pragma once
#ifdef __AVX512F__  // gcc 12's own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define POSENC_INLINE inline __attribute__((always_inline))

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kLineBytes = 64;  // a cache line: what is prefetched and streamed at a time

typedef float Floats __attribute__((vector_size(kBytes)));
typedef double Doubles __attribute__((vector_size(kBytes)));
typedef int32_t Ints __attribute__((vector_size(kBytes)));
typedef uint32_t Words __attribute__((vector_size(kBytes)));
typedef int64_t Longs __attribute__((vector_size(kBytes)));

constexpr int kFloats = kBytes / 4;
constexpr int kDoubles = kBytes / 8;

template <typename Vector, typename T>
POSENC_INLINE Vector load(const T* from) {
  Vector v;
  memcpy(&v, from, sizeof v);
  return v;
}
template <typename Vector, typename T>
POSENC_INLINE void store(T* to, Vector v) {
  memcpy(to, &v, sizeof v);
}

// A line past the caches: what is larger than they are need not be read in before it is
// overwritten. `to` is aligned to a line's size.
POSENC_INLINE void stream_line(void* to, const void* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_load_si512(from));
#else
  for (int i = 0; i < kLineBytes / 16; ++i)
    _mm_stream_si128(static_cast<__m128i*>(to) + i,
                     _mm_load_si128(static_cast<const __m128i*>(from) + i));
#endif
}

// Lane i is `factor` where bit i is set, else 0.
POSENC_INLINE Floats spread(uint64_t bits, Floats factor) {
  Ints lane;
  for (int i = 0; i < kFloats; ++i) lane[i] = 1 << i;
  const Ints set = ((static_cast<int32_t>(bits) + Ints{}) & lane) != 0;
  return reinterpret_cast<Floats>(set & reinterpret_cast<Ints>(factor));
}
POSENC_INLINE Doubles spread(uint64_t bits, Doubles factor) {
  Longs lane;
  for (int i = 0; i < kDoubles; ++i) lane[i] = 1 << i;
  const Longs set = ((static_cast<int64_t>(bits) + Longs{}) & lane) != 0;
  return reinterpret_cast<Doubles>(set & reinterpret_cast<Longs>(factor));
}

}  // namespace
}  // namespace posenc::kernels::embed::POSENC_ISA
