// Loops over a row in steps of sixteen floats. Included by the kernel sources, inside the
// instruction set's own namespace: nothing here is shared between sets.
#pragma once
#include "kernels/isa/float_lanes.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// Calls f(first, n) for each sixteen of `width` elements; n is smaller only for an incomplete last
// step.
template <typename F>
POSENC_INLINE void by_sixteen(int64_t width, F f) {
  int64_t i = 0;
  for (; i + kWide <= width; i += kWide) f(i, int64_t{kWide});
  if (i < width) f(i, width - i);
}
POSENC_INLINE Wide read(const float* from, int64_t n) {
  return n == kWide ? load_wide(from) : load_wide(from, n);
}
POSENC_INLINE void write(float* to, const Wide& w, int64_t n) {
  if (n != kWide) return static_cast<void>(memcpy(to, &w, sizeof(float) * static_cast<size_t>(n)));
  for (int i = 0; i < kParts; ++i) store(to + i * kFloats, w.part[i]);
}
template <typename F>
POSENC_INLINE Wide each(F f) {
  Wide w;
  for (int i = 0; i < kParts; ++i) w.part[i] = f(i);
  return w;
}

}  // namespace
}  // namespace posenc::kernels::inference::POSENC_ISA
