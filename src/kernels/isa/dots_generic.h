// The operations of dots.h without intrinsics.
#pragma once
#include "kernels/isa/ops.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

// Each column in two parts, of two elements each.
constexpr int kOffset = 0;
constexpr int kMostSums = 4;
typedef int16_t Products __attribute__((vector_size(2 * kBytes)));
typedef int32_t Pairs __attribute__((vector_size(2 * kBytes)));
typedef int8_t Quarters __attribute__((vector_size(kBytes)));
struct Sums {
  Pairs pairs;
};
struct Weights {
  Products elements;
};
struct Bytes4 {
  Products elements;
};

POSENC_INLINE void narrow_sixteen(uint8_t* to, const Ints (&x)[kParts]) {
  for (int i = 0; i < kWide; ++i) to[i] = static_cast<uint8_t>(x[i / kFloats][i % kFloats]);
}

POSENC_INLINE Sums sums_from(const int32_t*) { return Sums(); }
POSENC_INLINE Products widened(Quarters bytes) { return __builtin_convertvector(bytes, Products); }
POSENC_INLINE Weights load_weights(const int8_t* from) { return {widened(load<Quarters>(from))}; }
POSENC_INLINE Bytes4 load_bytes4(const uint8_t* from) {
  return {widened(reinterpret_cast<Quarters>(load<int32_t>(from) - Ints{}))};
}
// A product is at most 127 * 127 < 2^15.
POSENC_INLINE void add(Sums& s, const Weights& w, const Bytes4& x) {
  const Pairs both = reinterpret_cast<Pairs>(w.elements * x.elements);
  s.pairs += (both << 16 >> 16) + (both >> 16);
}
POSENC_INLINE Ints total(const Sums& s) {
  return __builtin_shufflevector(s.pairs, s.pairs, 0, 2, 4, 6) +
         __builtin_shufflevector(s.pairs, s.pairs, 1, 3, 5, 7);
}

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
