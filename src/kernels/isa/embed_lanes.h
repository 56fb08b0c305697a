// Lanes of the embedding kernels by the bits of a dropout mask. Included by the kernel sources,
// inside the instruction set's own namespace: nothing here is shared between sets.
#pragma once
#include "kernels/isa/ops.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

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
