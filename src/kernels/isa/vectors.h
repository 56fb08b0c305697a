// Vectors as wide as the instruction set's registers, as gcc's vector types: +, * and & are
// lane-wise. Included by the kernel sources, in a namespace of each instruction set, which the
// kernels' own namespaces import by `using namespace`; nothing is shared between sets.
#pragma once
#include <stdint.h>
#include <string.h>

#define POSENC_INLINE inline __attribute__((always_inline))
// Before a loop: asserts that iterations in one vector neither read nor write what another one
// writes.
#ifdef __clang__
#define POSENC_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define POSENC_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace posenc::kernels::POSENC_ISA {
namespace {

// kBytes: of a vector. kRegisters: how many vectors the processor holds. kHasFma: whether products
// can be added without a rounding in between. kStreams: whether there are non-temporal stores.
#if defined(POSENC_GENERIC)
constexpr int kBytes = 16, kRegisters = 16;
#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
constexpr bool kHasFma = true;
#else
constexpr bool kHasFma = false;
#endif
constexpr bool kStreams = false;
#elif defined(__x86_64__)
#if defined(__AVX512F__)
constexpr int kBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kRegisters = 16;
#else
constexpr int kBytes = 16, kRegisters = 16;
#endif
constexpr bool kHasFma = kBytes > 16;
constexpr bool kStreams = true;
#else
constexpr int kBytes = 16, kRegisters = 32;
constexpr bool kHasFma = true;
constexpr bool kStreams = false;
#endif

typedef float Floats __attribute__((vector_size(kBytes)));
typedef double Doubles __attribute__((vector_size(kBytes)));
typedef int32_t Ints __attribute__((vector_size(kBytes)));
typedef uint32_t Words __attribute__((vector_size(kBytes)));
typedef int64_t Longs __attribute__((vector_size(kBytes)));
typedef float Floats4 __attribute__((vector_size(16)));
typedef float Floats8 __attribute__((vector_size(32)));
typedef float HalfFloats __attribute__((vector_size(kBytes / 2)));  // as many as Doubles has

constexpr int kFloats = kBytes / 4;
constexpr int kDoubles = kBytes / 8;
constexpr int kLineBytes = 64;  // a cache line: the unit of prefetching and streaming

// Sixteen floats, in as many registers as they need.
constexpr int kWide = 16;
constexpr int kParts = kWide / kFloats;
struct Wide {
  Floats part[kParts];
};

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

POSENC_INLINE Words bits_of(Floats x) { return reinterpret_cast<Words>(x); }
POSENC_INLINE Floats floats_of(Words x) { return reinterpret_cast<Floats>(x); }
POSENC_INLINE HalfFloats to_floats(Doubles x) { return __builtin_convertvector(x, HalfFloats); }
POSENC_INLINE Words select(Ints condition, Words yes, Words no) {
  const Words mask = reinterpret_cast<Words>(condition);
  return (yes & mask) | (no & ~mask);
}

// 2^n for integers n from -126 to 127. Adding 1.5 * 2^23 moves n to the low bits of a float.
POSENC_INLINE Floats power_of_two(Floats n) {
  return floats_of((bits_of(n + 12582912.0f) + 127) << 23);
}

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
