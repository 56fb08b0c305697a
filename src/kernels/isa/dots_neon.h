// The operations of dots.h for ARM64, with and without the dot product of bytes.
#pragma once
#include "kernels/isa/ops.h"

namespace posenc::kernels::POSENC_ISA {
namespace {

constexpr int kOffset = 0;

POSENC_INLINE int8x16_t narrowed(const Ints (&x)[kParts]) {
  const int16x8_t first = vcombine_s16(vmovn_s32(x[0]), vmovn_s32(x[1]));
  const int16x8_t last = vcombine_s16(vmovn_s32(x[2]), vmovn_s32(x[3]));
  return vcombine_s8(vqmovn_s16(first), vqmovn_s16(last));
}
POSENC_INLINE void narrow_weight(int8_t* to, const Ints (&q)[kParts]) { vst1q_s8(to, narrowed(q)); }
POSENC_INLINE void narrow_x(uint8_t* to, const Ints (&q)[kParts]) {
  vst1q_u8(to, vreinterpretq_u8_s8(narrowed(q)));
}

struct Weights {
  int8x16_t bytes;
};
struct Bytes4 {
  int8x16_t bytes;
};

POSENC_INLINE Weights load_weights(const int8_t* from) { return {vld1q_s8(from)}; }
POSENC_INLINE Bytes4 load_bytes4(const uint8_t* from) {
  return {vreinterpretq_s8_s32(vdupq_n_s32(load<int32_t>(from)))};
}

#if defined(__ARM_FEATURE_DOTPROD)

constexpr int kMostSums = 24;
struct Sums {
  Ints sums;
};
POSENC_INLINE Sums sums_from(Ints x) { return {x}; }

POSENC_INLINE void add(Sums& s, const Weights& w, const Bytes4& x) {
  s.sums = vdotq_s32(s.sums, w.bytes, x.bytes);
}
POSENC_INLINE Ints total(const Sums& s) { return s.sums; }

#else

// Columns 0 and 1, and 2 and 3, each in two parts.
constexpr int kMostSums = 12;
struct Sums {
  Ints first, last;
};
POSENC_INLINE Sums sums_from(Ints x) { return {vzip1q_s32(x, Ints{}), vzip2q_s32(x, Ints{})}; }

POSENC_INLINE void add(Sums& s, const Weights& w, const Bytes4& x) {
  s.first = vpadalq_s16(s.first, vmull_s8(vget_low_s8(w.bytes), vget_low_s8(x.bytes)));
  s.last = vpadalq_s16(s.last, vmull_high_s8(w.bytes, x.bytes));
}
POSENC_INLINE Ints total(const Sums& s) { return vpaddq_s32(s.first, s.last); }

#endif

}  // namespace
}  // namespace posenc::kernels::POSENC_ISA
