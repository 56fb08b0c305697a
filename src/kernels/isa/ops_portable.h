// The operations of ops_x86.h that vector types express for vectors of 16 bytes.
#pragma once
#include "kernels/isa/vectors.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

POSENC_INLINE Floats4 fold(const Wide& w) {
  return (w.part[0] + w.part[2]) + (w.part[1] + w.part[3]);
}
POSENC_INLINE Floats alternating(Doubles a, Doubles b) {
  return __builtin_shufflevector(to_floats(a), to_floats(b), 0, 2, 1, 3);
}
POSENC_INLINE Words rounded_up(Words u) { return u + 0x7fff + (u >> 16 & 1); }

POSENC_INLINE Floats maximum(Floats a, Floats b) { return a > b ? a : b; }
POSENC_INLINE Floats minimum(Floats a, Floats b) { return a < b ? a : b; }
POSENC_INLINE Floats times_power(Floats y, Floats n) { return y * power_of_two(n); }

// Ordinary stores: kStreams is false.
POSENC_INLINE void stream16(void* to, const void* from) { memcpy(to, from, 16); }
POSENC_INLINE void stream_line(void* to, const void* from) { memcpy(to, from, kLineBytes); }
POSENC_INLINE void stream_end() {}

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
