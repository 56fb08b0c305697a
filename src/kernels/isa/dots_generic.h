// The operations of dots.h without intrinsics.
#pragma once
#include "kernels/isa/ops.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

// Each column in two parts, of two elements each.
constexpr int kOffset = 0;
constexpr int kMostSums = 4;
typedef int16_t Products __attribute__((vector_size(2 * kBytes)));
typedef int32_t PairSums __attribute__((vector_size(2 * kBytes)));
typedef int8_t Quarters __attribute__((vector_size(kBytes)));
struct Sums {
  PairSums pairs;
};
struct Weights {
  Products elements;
};
struct Bytes4 {
  Products elements;
};

template <typename Byte>
POSENC_INLINE void narrow_x(Byte* to, const Ints (&q)[kParts]) {
  for (int i = 0; i < kWide; ++i) {
    const int32_t one = q[i / kFloats][i % kFloats];
    to[i] = static_cast<Byte>(one < 127 ? one : 127);
  }
}
POSENC_INLINE void narrow_weight(int8_t* to, const Ints (&q)[kParts]) { narrow_x(to, q); }

POSENC_INLINE Sums sums_from(Ints x) {
  return {__builtin_shufflevector(x, Ints{}, 0, 4, 1, 5, 2, 6, 3, 7)};
}
POSENC_INLINE Products widened(Quarters bytes) { return __builtin_convertvector(bytes, Products); }
POSENC_INLINE Weights load_weights(const int8_t* from) { return {widened(load<Quarters>(from))}; }
POSENC_INLINE Bytes4 load_bytes4(const uint8_t* from) {
  return {widened(reinterpret_cast<Quarters>(load<int32_t>(from) - Ints{}))};
}
// A product is at most 127 * 127 < 2^15.
POSENC_INLINE void add(Sums& s, const Weights& w, const Bytes4& x) {
  const PairSums both = reinterpret_cast<PairSums>(w.elements * x.elements);
  s.pairs += (both << 16 >> 16) + (both >> 16);
}
POSENC_INLINE Ints total(const Sums& s) {
  return __builtin_shufflevector(s.pairs, s.pairs, 0, 2, 4, 6) +
         __builtin_shufflevector(s.pairs, s.pairs, 1, 3, 5, 7);
}

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
