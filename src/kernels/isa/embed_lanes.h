// Vector types and cache-line stores of the embedding kernels. Included by the kernel sources,
// inside the instruction set's own namespace: nothing here is shared between sets.
#pragma once
#include "kernels/isa/vectors.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

constexpr int kLineBytes = 64;  // a cache line: the unit of prefetching and streaming

typedef double Doubles __attribute__((vector_size(kBytes)));
typedef uint32_t Words __attribute__((vector_size(kBytes)));
typedef int64_t Longs __attribute__((vector_size(kBytes)));

constexpr int kDoubles = kBytes / 8;

// Stores a line with non-temporal stores, which need not read it into the caches before it is
// overwritten. `to` is aligned to a line.
POSENC_INLINE void stream_line(void* to, const void* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_load_si512(from));
#else
  for (int i = 0; i < kLineBytes / 16; ++i)
    _mm_stream_si128(static_cast<__m128i*>(to) + i,
                     _mm_load_si128(static_cast<const __m128i*>(from) + i));
#endif
}

// Lane i is `factor` if bit i is set, else 0.
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
