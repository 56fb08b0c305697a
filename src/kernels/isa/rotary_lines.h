// Rotates the pairs of one head by factors in the order of its channels. Included by rotary.cpp,
// inside the instruction set's own namespace.
#pragma once
#include "kernels/isa/rotary_bfloat16.h"
#include "kernels/rotary.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

using posenc::kernels::POSENC_ISA::swapped;
POSENC_INLINE Pair swapped(Pair x) { return {x.odd, x.even}; }

POSENC_INLINE void load_vector(const float* from, Floats& to) { to = load<Floats>(from); }
POSENC_INLINE void load_vector(const double* from, Doubles& to) { to = load<Doubles>(from); }
POSENC_INLINE void load_vector(const float* from, Pair& to) {
  to = {load<Floats>(from), load<Floats>(from + kFloats)};
}

// x c + other s, where each product and the sum are rounded according to the kind. `zeros`: see
// Rotation.
template <typename K>
POSENC_INLINE typename K::Vector rotated(typename K::Vector x, typename K::Vector other,
                                         const typename K::Real* c, const typename K::Real* s,
                                         int zeros) {
  typename K::Vector cosine, sine;
  load_vector(c, cosine);
  load_vector(s, sine);
  auto y = K::rounded(K::rounded(x * cosine) + K::rounded(other * sine));
  if (zeros & rotary::kToPairs) y = y + typename K::Vector{};
  y = K::result(y);
  return zeros & rotary::kToHeads ? y + typename K::Vector{} : y;
}

// Rotates one vector of channels: those of both halves by the factors c1, s1, c2, s2, or adjacent
// ones by c, s.
template <typename K>
struct Step {
  using T = typename K::Stored;
  using Real = typename K::Real;
  static constexpr int kLanes = K::kLanes;

  static POSENC_INLINE void halves(const T* x1, const T* x2, T* y1, T* y2, const Real* f,
                                   int zeros) {
    const auto a = K::Element::read(x1), b = K::Element::read(x2);
    const auto first = rotated<K>(a, b, f, f + kLanes, zeros);
    const auto second = rotated<K>(b, a, f + 2 * kLanes, f + 3 * kLanes, zeros);
    K::Element::write(y1, first);
    K::Element::write(y2, second);
  }
  static POSENC_INLINE void adjacent(const T* x, T* y, const Real* f, int zeros) {
    const auto a = K::Element::read(x);
    K::Element::write(y, rotated<K>(a, swapped(a), f, f + kLanes, zeros));
  }
};

// The same with factors in two forms: as above, and for the quick arithmetic.
template <typename K>
struct QuickStep {
  using T = typename K::Stored;

  // No ordinary numbers add up to -0.
  static POSENC_INLINE void halves(const T* x1, const T* x2, T* y1, T* y2, const float* f,
                                   const float* quick, int zeros) {
    const Words a = load<Words>(x1), b = load<Words>(x2);
    if (!__builtin_expect(are_ordinary(ordinary_bits(a) & ordinary_bits(b)), 1))
      return slow_halves(x1, x2, y1, y2, f, zeros);
    const Pair first = pair_of(a), second = pair_of(b);
    rotate_quick(first, second, quick, quick + kQuickFloats, y1);
    rotate_quick(second, first, quick + 2 * kQuickFloats, quick + 3 * kQuickFloats, y2);
  }
  static POSENC_INLINE void adjacent(const T* x, T* y, const float* f, const float* quick,
                                     int zeros) {
    const Words a = load<Words>(x);
    if (!__builtin_expect(are_ordinary(ordinary_bits(a)), 1)) return slow_adjacent(x, y, f, zeros);
    const Pair pair = pair_of(a);
    rotate_quick(pair, swapped(pair), quick, quick + kQuickFloats, y);
  }

 private:
  static POSENC_INLINE Pair pair_of(Words u) {
    return {floats_of(u << 16), floats_of(u & 0xffff0000)};
  }
  static __attribute__((noinline)) void slow_halves(const T* x1, const T* x2, T* y1, T* y2,
                                                    const float* f, int zeros) {
    Step<K>::halves(x1, x2, y1, y2, f, zeros);
  }
  static __attribute__((noinline)) void slow_adjacent(const T* x, T* y, const float* f, int zeros) {
    Step<K>::adjacent(x, y, f, zeros);
  }
};

// n channels, with the factors of each vector side by side.
template <typename K, bool kQuick>
struct Lines {
  using T = typename K::Stored;
  using Real = typename K::Real;
  static constexpr int kLine = K::kLine, kLanes = K::kLanes;

  template <bool kStream>
  static POSENC_INLINE void halves(const T* x, T* y, int64_t n, const Real* f, const Real* quick,
                                   int zeros) {
    const int64_t whole = n / kLine * kLine;
    for (int64_t i = 0; i < whole; i += kLine)
      halves_line<kStream>(x + i, x + n + i, y + i, y + n + i, f + 4 * i, quick + 8 * i, zeros);
    if (whole < n) halves_tail(x + whole, y + whole, n, n - whole, f + 4 * whole, zeros);
  }

  template <bool kStream>
  static POSENC_INLINE void adjacent(const T* x, T* y, int64_t n, const Real* f, const Real* quick,
                                     int zeros) {
    const int64_t whole = n / kLine * kLine;
    for (int64_t i = 0; i < whole; i += kLine)
      adjacent_line<kStream>(x + i, y + i, f + 2 * i, quick + 4 * i, zeros);
    if (whole < n) adjacent_tail(x + whole, y + whole, n - whole, f + 2 * whole, zeros);
  }

 private:
  template <bool kStream>
  static POSENC_INLINE void halves_line(const T* x1, const T* x2, T* y1, T* y2, const Real* f,
                                        const Real* quick, int zeros) {
    alignas(kLineBytes) T staged1[kLine], staged2[kLine];
    T* const to1 = kStream ? staged1 : y1;
    T* const to2 = kStream ? staged2 : y2;
#pragma GCC unroll 4
    for (int j = 0; j < kLine; j += kLanes) {
      if constexpr (kQuick)
        QuickStep<K>::halves(x1 + j, x2 + j, to1 + j, to2 + j, f + 4 * j, quick + 8 * j, zeros);
      else
        Step<K>::halves(x1 + j, x2 + j, to1 + j, to2 + j, f + 4 * j, zeros);
    }
    if (kStream) stream_line(y1, staged1);
    if (kStream) stream_line(y2, staged2);
  }

  template <bool kStream>
  static POSENC_INLINE void adjacent_line(const T* x, T* y, const Real* f, const Real* quick,
                                          int zeros) {
    alignas(kLineBytes) T staged[kLine];
    T* const to = kStream ? staged : y;
#pragma GCC unroll 4
    for (int j = 0; j < kLine; j += kLanes) {
      if constexpr (kQuick)
        QuickStep<K>::adjacent(x + j, to + j, f + 2 * j, quick + 4 * j, zeros);
      else
        Step<K>::adjacent(x + j, to + j, f + 2 * j, zeros);
    }
    if (kStream) stream_line(y, staged);
  }

  // The last elements, through lines padded with zeros.
  static __attribute__((noinline)) void halves_tail(const T* x, T* y, int64_t n, int64_t rest,
                                                    const Real* f, int zeros) {
    const size_t bytes = sizeof(T) * static_cast<size_t>(rest);
    T x1[kLine] = {}, x2[kLine] = {}, y1[kLine], y2[kLine];
    memcpy(x1, x, bytes);
    memcpy(x2, x + n, bytes);
    for (int j = 0; j < kLine; j += kLanes)
      Step<K>::halves(x1 + j, x2 + j, y1 + j, y2 + j, f + 4 * j, zeros);
    memcpy(y, y1, bytes);
    memcpy(y + n, y2, bytes);
  }
  static __attribute__((noinline)) void adjacent_tail(const T* x, T* y, int64_t rest, const Real* f,
                                                      int zeros) {
    const size_t bytes = sizeof(T) * static_cast<size_t>(rest);
    T padded[kLine] = {}, result[kLine];
    memcpy(padded, x, bytes);
    for (int j = 0; j < kLine; j += kLanes)
      Step<K>::adjacent(padded + j, result + j, f + 2 * j, zeros);
    memcpy(y, result, bytes);
  }
};

}  // namespace
}  // namespace posenc::kernels::embed::POSENC_ISA
