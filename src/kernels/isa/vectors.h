// Vectors as wide as the instruction set's registers, as gcc's vector types: +, * and & are
// lane-wise. Included by the kernel sources, in a namespace of each instruction set, which the
// kernels' own namespaces import by `using namespace`; nothing is shared between sets.
#pragma once
#if defined(__AVX512F__) && !defined(__clang__)  // gcc 12's own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
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

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

typedef float Floats __attribute__((vector_size(kBytes)));
typedef int32_t Ints __attribute__((vector_size(kBytes)));

constexpr int kFloats = kBytes / 4;

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

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
