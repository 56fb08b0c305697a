// Rows of cos and sin in the order in which the lines of a head need them. Included by rotary.cpp,
// inside the instruction set's own namespace.
#pragma once
#include "kernels/isa/embed_kinds.h"
#include "kernels/rotary.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

// kFloats elements from `from`, of which `entries` exist.
template <typename E>
POSENC_INLINE Floats read_some(const typename E::Stored* from, int64_t entries) {
  if (entries >= kFloats) return E::read(from);
  typename E::Stored padded[kFloats] = {};
  memcpy(padded, from, sizeof(padded[0]) * static_cast<size_t>(entries));
  return E::read(padded);
}

// A row of the table in the type of the arithmetic; written to `to` if it has to be converted.
template <typename K>
const typename K::Real* converted(const rotary::Angles& a, const void* table, int64_t at,
                                  int64_t entries, typename K::Real* to) {
  using T = typename K::Stored;
  using Real = typename K::Real;
  if constexpr (sizeof(T) == sizeof(float)) {
    return static_cast<const Real*>(table) + at;
  } else if constexpr (sizeof(T) == sizeof(double)) {
    if (!a.is_float) return static_cast<const Real*>(table) + at;
    for (int64_t i = 0; i < entries; ++i) to[i] = Real{static_cast<const float*>(table)[at + i]};
  } else if (a.is_float) {
    const float* const from = static_cast<const float*>(table) + at;
    for (int64_t i = 0; i < entries; i += kFloats) {
      const Floats x = read_some<Float32>(from + i, entries - i);
      // one NaN for all, since rounding would lose the low bits of others
      store(to + i, a.round ? K::Single::round_any(x)
                            : floats_of(select(x == x, bits_of(x), Words{} + 0x7fc00000)));
    }
  } else {
    const T* const from = static_cast<const T*>(table) + at;
    for (int64_t i = 0; i < entries; i += kFloats)
      store(to + i, read_some<typename K::Single>(from + i, entries - i));
  }
  return to;
}

template <int kFrom, int kTo, typename Real>
POSENC_INLINE void scatter(const Real* from, Real factor, int64_t n, Real* to) {
  for (int64_t i = 0; i < n; ++i) to[kTo * i] = from[kFrom * i] * factor;
}
template <typename Real>
void scatter(const Real* from, int64_t step, Real factor, int64_t n, Real* to, int to_step) {
  if (step == 1)
    to_step == 1 ? scatter<1, 1>(from, factor, n, to) : scatter<1, 2>(from, factor, n, to);
  else
    to_step == 1 ? scatter<2, 1>(from, factor, n, to) : scatter<2, 2>(from, factor, n, to);
}

// Consecutive factors in the order of the elements in a vector of the kind.
POSENC_INLINE Floats arranged(const float* from, Floats*) { return load<Floats>(from); }
POSENC_INLINE Doubles arranged(const double* from, Doubles*) { return load<Doubles>(from); }
POSENC_INLINE Pair arranged(const float* from, Pair*) {
  const Floats a = load<Floats>(from), b = load<Floats>(from + kFloats);
  return {even_lanes(a, b), odd_lanes(a, b)};
}
POSENC_INLINE void store_vector(float* to, Floats x) { store(to, x); }
POSENC_INLINE void store_vector(double* to, Doubles x) { store(to, x); }
POSENC_INLINE void store_vector(float* to, Pair x) {
  store(to, x.even);
  store(to + kFloats, x.odd);
}

}  // namespace
}  // namespace posenc::kernels::embed::POSENC_ISA
