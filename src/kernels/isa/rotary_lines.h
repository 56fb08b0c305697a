// One head's pairs rotate by factors that are in the order of its channels. Included by rotary.cpp,
// inside the instruction set's own namespace.
#pragma once
#include "kernels/isa/embed_kinds.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

// Neighbours change places.
POSENC_INLINE Floats swapped(Floats x) {
#if defined(__AVX512F__)
  return _mm512_permute_ps(x, 0xb1);
#elif defined(__AVX2__)
  return _mm256_permute_ps(x, 0xb1);
#else
  return _mm_shuffle_ps(x, x, 0xb1);
#endif
}
POSENC_INLINE Doubles swapped(Doubles x) {
#if defined(__AVX512F__)
  return _mm512_permute_pd(x, 0x55);
#elif defined(__AVX2__)
  return _mm256_permute_pd(x, 0x5);
#else
  return _mm_shuffle_pd(x, x, 1);
#endif
}
POSENC_INLINE Pair swapped(Pair x) { return {x.odd, x.even}; }

// Factors as they were arranged for this vector.
POSENC_INLINE void load_factors(const float* from, Floats& to) { to = load<Floats>(from); }
POSENC_INLINE void load_factors(const double* from, Doubles& to) { to = load<Doubles>(from); }
POSENC_INLINE void load_factors(const float* from, Pair& to) {
  to = {load<Floats>(from), load<Floats>(from + kFloats)};
}

// As load_factors() wants them.
POSENC_INLINE void arrange(float*, int64_t, Floats*) {}
POSENC_INLINE void arrange(double*, int64_t, Doubles*) {}
POSENC_INLINE void arrange(float* entries, int64_t n, Pair*) {
  for (int64_t i = 0; i < n; i += 2 * kFloats) {
    float mixed[2 * kFloats];
    memcpy(mixed, entries + i, sizeof mixed);
    for (int j = 0; j < kFloats; ++j) {
      entries[i + j] = mixed[2 * j];
      entries[i + kFloats + j] = mixed[2 * j + 1];
    }
  }
}

// x c + other s, each product and the sum rounded as the kind has it.
template <typename K>
POSENC_INLINE typename K::Vector rotated(typename K::Vector x, typename K::Vector other,
                                         const typename K::Real* c, const typename K::Real* s) {
  typename K::Vector cosine, sine;
  load_factors(c, cosine);
  load_factors(s, sine);
  return K::result(K::rounded(K::rounded(x * cosine) + K::rounded(other * sine)));
}

// The factors of one row, n entries a part: c1, s1, c2, s2, or with adjacent pairs c and s, 2n
// each.
template <typename K>
struct Factors {
  using T = typename K::Stored;
  using Real = typename K::Real;
  static constexpr int kLine = K::kLine, kLanes = K::kLanes;

  const Real *c1, *s1, *c2, *s2;

  template <bool kStream>
  POSENC_INLINE void halves_line(const T* x1, const T* x2, T* y1, T* y2, int64_t i) const {
    alignas(kLineBytes) T staged1[kLine], staged2[kLine];
    T* const to1 = kStream ? staged1 : y1 + i;
    T* const to2 = kStream ? staged2 : y2 + i;
#pragma GCC unroll 4
    for (int j = 0; j < kLine; j += kLanes) {
      const auto a = K::Element::read(x1 + i + j), b = K::Element::read(x2 + i + j);
      const auto first = rotated<K>(a, b, c1 + i + j, s1 + i + j);
      const auto second = rotated<K>(b, a, c2 + i + j, s2 + i + j);
      K::Element::write(to1 + j, first);
      K::Element::write(to2 + j, second);
    }
    if (kStream) stream_line(y1 + i, staged1);
    if (kStream) stream_line(y2 + i, staged2);
  }

  template <bool kStream>
  POSENC_INLINE void adjacent_line(const T* x, T* y, int64_t i) const {
    alignas(kLineBytes) T staged[kLine];
    T* const to = kStream ? staged : y + i;
#pragma GCC unroll 4
    for (int j = 0; j < kLine; j += kLanes) {
      const auto a = K::Element::read(x + i + j);
      K::Element::write(to + j, rotated<K>(a, swapped(a), c1 + i + j, s1 + i + j));
    }
    if (kStream) stream_line(y + i, staged);
  }

  template <bool kStream>
  POSENC_INLINE void halves(const T* x, T* y, int64_t n) const {
    const int64_t whole = n / kLine * kLine, rest = n - whole;
    for (int64_t i = 0; i < whole; i += kLine) halves_line<kStream>(x, x + n, y, y + n, i);
    if (rest > 0) halves_tail(x + whole, y + whole, n, whole, rest);
  }

  template <bool kStream>
  POSENC_INLINE void adjacent(const T* x, T* y, int64_t n) const {
    const int64_t whole = n / kLine * kLine, rest = n - whole;
    for (int64_t i = 0; i < whole; i += kLine) adjacent_line<kStream>(x, y, i);
    if (rest > 0) adjacent_tail(x + whole, y + whole, whole, rest);
  }

 private:
  Factors from(int64_t i) const { return {c1 + i, s1 + i, c2 + i, s2 + i}; }

  // The last elements, by way of lines padded with zeros.
  __attribute__((noinline)) void halves_tail(const T* x, T* y, int64_t n, int64_t i,
                                             int64_t rest) const {
    const size_t bytes = sizeof(T) * static_cast<size_t>(rest);
    T x1[kLine] = {}, x2[kLine] = {}, y1[kLine], y2[kLine];
    memcpy(x1, x, bytes);
    memcpy(x2, x + n, bytes);
    from(i).template halves_line<false>(x1, x2, y1, y2, 0);
    memcpy(y, y1, bytes);
    memcpy(y + n, y2, bytes);
  }
  __attribute__((noinline)) void adjacent_tail(const T* x, T* y, int64_t i, int64_t rest) const {
    const size_t bytes = sizeof(T) * static_cast<size_t>(rest);
    T padded[kLine] = {}, result[kLine];
    memcpy(padded, x, bytes);
    from(i).template adjacent_line<false>(padded, result, 0);
    memcpy(y, result, bytes);
  }
};

}  // namespace
}  // namespace posenc::kernels::embed::POSENC_ISA
