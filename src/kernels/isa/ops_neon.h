// The operations of ops_x86.h for ARM64, every processor of which has them: with NEON.
#pragma once
#include <arm_neon.h>

#include "kernels/isa/ops_portable.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

POSENC_INLINE Floats fma(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
POSENC_INLINE Doubles fma(Doubles a, Doubles b, Doubles c) { return vfmaq_f64(c, a, b); }
POSENC_INLINE Floats minus_product(Floats a, Floats b, Floats c) { return vfmsq_f32(a, b, c); }

POSENC_INLINE void keep_in_register(Floats& x) { asm("" : "+w"(x)); }

// Both halves of eight lanes.
POSENC_INLINE Floats low(Floats8 x) { return __builtin_shufflevector(x, x, 0, 1, 2, 3); }
POSENC_INLINE Floats high(Floats8 x) { return __builtin_shufflevector(x, x, 4, 5, 6, 7); }
POSENC_INLINE Floats8 joined(Floats low, Floats high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}
POSENC_INLINE Floats8 fma(Floats8 a, Floats8 b, Floats8 c) {
  return joined(fma(low(a), low(b), low(c)), fma(high(a), high(b), high(c)));
}
POSENC_INLINE Floats8 square_root(Floats8 x) {
  return joined(vsqrtq_f32(low(x)), vsqrtq_f32(high(x)));
}

POSENC_INLINE bool is_zero(Words x) { return vmaxvq_u32(x) == 0; }
POSENC_INLINE uint64_t greater(Floats a, Floats b) {
  constexpr Words kLanes = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(vcgtq_f32(a, b), kLanes));
}
POSENC_INLINE uint64_t signs(Longs x) {
  const uint64x2_t ones = vshrq_n_u64(reinterpret_cast<uint64x2_t>(x), 63);
  return vgetq_lane_u64(ones, 0) | vgetq_lane_u64(ones, 1) << 1;
}

POSENC_INLINE Words low_words(Doubles a, Doubles b) {
  return vuzp1q_u32(reinterpret_cast<Words>(a), reinterpret_cast<Words>(b));
}
POSENC_INLINE Floats even_lanes(Floats a, Floats b) { return vuzp1q_f32(a, b); }
POSENC_INLINE Floats odd_lanes(Floats a, Floats b) { return vuzp2q_f32(a, b); }
POSENC_INLINE void transpose4(Floats4& a, Floats4& b, Floats4& c, Floats4& d) {
  const Floats4 ac0 = vzip1q_f32(a, c), ac2 = vzip2q_f32(a, c);
  const Floats4 bd0 = vzip1q_f32(b, d), bd2 = vzip2q_f32(b, d);
  a = vzip1q_f32(ac0, bd0);
  b = vzip2q_f32(ac0, bd0);
  c = vzip1q_f32(ac2, bd2);
  d = vzip2q_f32(ac2, bd2);
}
POSENC_INLINE void transpose(Floats (&x)[kFloats]) { transpose4(x[0], x[1], x[2], x[3]); }
POSENC_INLINE Floats swapped(Floats x) { return vrev64q_f32(x); }
POSENC_INLINE Doubles swapped(Doubles x) { return vextq_f64(x, x, 1); }

POSENC_INLINE Words widen(const uint16_t* from) { return vmovl_u16(vld1_u16(from)); }
POSENC_INLINE void narrow(uint16_t* to, Words x) { vst1_u16(to, vmovn_u32(x)); }

// float16, which rounds as F16C does.
POSENC_INLINE Floats read_half(const uint16_t* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}
POSENC_INLINE void write_half(uint16_t* to, Floats x) {
  vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(x)));
}
POSENC_INLINE Floats round_to_half(Floats x) { return vcvt_f32_f16(vcvt_f16_f32(x)); }

POSENC_INLINE void write_high(uint16_t* to, Words even, Words odd) {
  store(to, vsriq_n_u32(odd, even, 16));
}

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
