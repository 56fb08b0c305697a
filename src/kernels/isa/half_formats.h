// Converts float32 bits to bfloat16 and float16 bits, and detects where that would round twice.
// Included by sincos_rows.cpp, inside the instruction set's own namespace.
#pragma once
#include "kernels/isa/round_store.h"

namespace posenc::kernels::sincos::POSENC_ISA {
namespace {

// float32 to 16 bits, to nearest even. |x| <= 1, so there are no NaNs and no overflows.
POSENC_INLINE uint16_t to_bfloat16(uint32_t x) {
  return static_cast<uint16_t>((x + 0x7fff + (x >> 16 & 1)) >> 16);
}
POSENC_INLINE uint16_t to_float16(uint32_t x) {
  const uint32_t m = x & 0x7fffffff;
  const uint32_t normal = (m + 0xfff + (m >> 13 & 1) - (112u << 23)) >> 13;
  // Subnormal (below 2^-14): adding 1/2 aligns the last place of the sum with their ulp, 2^-24.
  const uint32_t subnormal =
      __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, m) + 0.5f) - (126u << 23);
  const uint32_t rounded = m < (113u << 23) ? subnormal : normal;
  return static_cast<uint16_t>(rounded | (x >> 16 & 0x8000));
}

// A correctly rounded float32 rounds to 16 bits as the exact value would, unless it is itself
// halfway between two 16-bit values. The functions below return whether it may be such a tie.
POSENC_INLINE bool bfloat16_tie(uint32_t x) { return (x & 0xffff) == 0x8000; }
POSENC_INLINE bool float16_tie(uint32_t x) {
  // Below 2^-14 ties are odd multiples of 2^-25 of at most 11 bits: the float's low 13 bits are 0.
  const uint32_t m = x & 0x7fffffff;
  return (m & 0x1fff) == (m < (113u << 23) ? 0u : 0x1000u);
}

}  // namespace
}  // namespace posenc::kernels::sincos::POSENC_ISA
