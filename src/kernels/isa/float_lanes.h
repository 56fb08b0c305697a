// Vector operations of the inference kernels. A sum along a vector is made in sixteen partial sums,
// whatever the width of a register, and folded in a fixed order, so that AVX2 and AVX-512 give the
// same bits. SSE2 has no fused multiply-add, and rounds twice where they round once.
// Included by the kernel sources, inside the instruction set's own namespace: nothing here is
// shared between sets.
#pragma once
#include "kernels/isa/vectors.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

typedef float Floats4 __attribute__((vector_size(16)));
#if defined(__AVX2__)
typedef float Floats8 __attribute__((vector_size(32)));
#endif

POSENC_INLINE Floats broadcast(float x) { return x - Floats{}; }

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

// Lane-wise maximum and minimum; b where either is NaN.
POSENC_INLINE Floats maximum(Floats a, Floats b) { return a > b ? a : b; }
POSENC_INLINE Floats minimum(Floats a, Floats b) { return a < b ? a : b; }

// Whether a > b in any lane.
POSENC_INLINE bool any_greater(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0;
#else
  return _mm_movemask_ps(_mm_cmpgt_ps(a, b)) != 0;
#endif
}

// Sixteen floats, in as many registers as they need.
constexpr int kWide = 16;
constexpr int kParts = kWide / kFloats;
struct Wide {
  Floats part[kParts];
};
POSENC_INLINE Wide load_wide(const float* from) {
  Wide w;
  for (int i = 0; i < kParts; ++i) w.part[i] = load<Floats>(from + i * kFloats);
  return w;
}
// The first n floats, then zeros.
POSENC_INLINE Wide load_wide(const float* from, int64_t n) {
  float padded[kWide] = {};
  memcpy(padded, from, sizeof(float) * static_cast<size_t>(n));
  return load_wide(padded);
}
POSENC_INLINE Wide fma(const Wide& a, const Wide& b, const Wide& c) {
  Wide w;
  for (int i = 0; i < kParts; ++i) w.part[i] = fma(a.part[i], b.part[i], c.part[i]);
  return w;
}

// Lane i of the result: the sum of lanes i, i + 4, i + 8 and i + 12.
POSENC_INLINE Floats4 fold(const Wide& w) {
#if defined(__AVX512F__)
  const Floats8 half = __builtin_shufflevector(w.part[0], w.part[0], 0, 1, 2, 3, 4, 5, 6, 7) +
                       __builtin_shufflevector(w.part[0], w.part[0], 8, 9, 10, 11, 12, 13, 14, 15);
#elif defined(__AVX2__)
  const Floats8 half = w.part[0] + w.part[1];
#endif
#if defined(__AVX2__)
  return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
         __builtin_shufflevector(half, half, 4, 5, 6, 7);
#else
  return (w.part[0] + w.part[2]) + (w.part[1] + w.part[3]);
#endif
}
POSENC_INLINE float total(const Wide& w) {
  const Floats4 x = fold(w);
  return (x[0] + x[2]) + (x[1] + x[3]);
}
// The totals of four, one per lane.
POSENC_INLINE Floats4 totals(const Wide& a, const Wide& b, const Wide& c, const Wide& d) {
  Floats4 x0 = fold(a), x1 = fold(b), x2 = fold(c), x3 = fold(d);
  _MM_TRANSPOSE4_PS(x0, x1, x2, x3);
  return (x0 + x2) + (x1 + x3);
}

}  // namespace
}  // namespace posenc::kernels::inference::POSENC_ISA
