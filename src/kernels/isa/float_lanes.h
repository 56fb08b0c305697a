// Vector operations of the inference kernels. A sum along a vector is made in sixteen partial sums,
// whatever the width of a register, and folded in a fixed order, so that all sets with fused
// multiply-add give the same bits. SSE2 has none, and rounds twice where they round once.
// Included by the kernel sources, inside the instruction set's own namespace: nothing here is
// shared between sets.
#pragma once
#include "kernels/inference.h"
#include "kernels/isa/ops.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

using posenc::kernels::POSENC_ISA::fma;

POSENC_INLINE Floats broadcast(float x) { return x - Floats{}; }
// The nearest integers, ties to even, of numbers below 2^22: adding 1.5 * 2^23 puts them into the
// low bits.
POSENC_INLINE Ints nearest(Floats x) {
  constexpr float kRound = 0x1.8p23f;
  return reinterpret_cast<Ints>(x + broadcast(kRound)) - reinterpret_cast<Ints>(broadcast(kRound));
}

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
// The same of bfloat16, widened.
POSENC_INLINE Wide load_wide(const BFloat16* from) {
  Wide w;
  for (int i = 0; i < kParts; ++i) w.part[i] = floats_of(widen(from + i * kFloats) << 16);
  return w;
}
POSENC_INLINE Wide load_wide(const BFloat16* from, int64_t n) {
  BFloat16 padded[kWide] = {};
  memcpy(padded, from, sizeof(BFloat16) * static_cast<size_t>(n));
  return load_wide(padded);
}
POSENC_INLINE Wide fma(const Wide& a, const Wide& b, const Wide& c) {
  Wide w;
  for (int i = 0; i < kParts; ++i) w.part[i] = fma(a.part[i], b.part[i], c.part[i]);
  return w;
}

POSENC_INLINE float total(const Wide& w) {
  const Floats4 x = fold(w);
  return (x[0] + x[2]) + (x[1] + x[3]);
}
// The totals of four, one per lane.
POSENC_INLINE Floats4 totals(const Wide& a, const Wide& b, const Wide& c, const Wide& d) {
  Floats4 x0 = fold(a), x1 = fold(b), x2 = fold(c), x3 = fold(d);
  transpose4(x0, x1, x2, x3);
  return (x0 + x2) + (x1 + x3);
}

}  // namespace
}  // namespace posenc::kernels::inference::POSENC_ISA
