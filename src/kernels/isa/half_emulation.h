// float16 for sets without an instruction for it, by integer arithmetic on vectors. Included by the
// ops headers, inside the instruction set's own namespace.
#pragma once
#include "kernels/isa/vectors.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

POSENC_INLINE Floats decode_half(Words h) {
  const Words m = (h & 0x7fff) << 13, sign = (h & 0x8000) << 16;
  const Words normal = m + (112u << 23);
  const Words special = m | 0x7f800000;  // infinity and NaN
  const Words small =
      bits_of(__builtin_convertvector(reinterpret_cast<Ints>(h & 0x3ff), Floats) * 0x1p-24f);
  const Words exponent = h & 0x7c00;
  const Words size = select(exponent == 0, small, select(exponent == 0x7c00, special, normal));
  return floats_of(size | sign);
}
POSENC_INLINE Words encode_half(Floats x) {
  const Words m = bits_of(x) & 0x7fffffff, sign = bits_of(x) >> 16 & 0x8000;
  const Words normal = (m + 0xfff + (m >> 13 & 1) - (112u << 23)) >> 13;
  // Below 2^-14: adding 1/2 aligns the last place of the sum with the subnormal ulp, 2^-24.
  const Words small = bits_of(floats_of(m) + 0.5f) - (126u << 23);
  const Words finite = select(m < (113u << 23), small, normal);
  const Words large = select(m > 0x7f800000, Words{} + 0x7e00, Words{} + 0x7c00);
  return select(m < 0x47800000, finite, large) | sign;  // 2^16 and above is infinity
}

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
