// The element types: how a vector of each is loaded, rounded and stored. Included by the kernel
// sources, inside the instruction set's own namespace.
//
// bfloat16 is a float32 without its low 16 bits: rounding to nearest even is an integer addition.
#pragma once
#include "kernels/isa/embed_lanes.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

// Multiplication and addition in one element type, and where they round.
template <typename T, typename V>
struct Plain {  // float32, float64
  using Stored = T;
  using Real = T;
  using Vector = V;
  static constexpr int kLanes = sizeof(V) / sizeof(T);
  static POSENC_INLINE V broadcast(T x) { return x + V{}; }
  static POSENC_INLINE V read(const T* from) { return load<V>(from); }
  static POSENC_INLINE void write(T* to, V x) { store(to, x); }
  static POSENC_INLINE V round(V x) { return x; }
  static POSENC_INLINE V round_any(V x) { return x; }
};
using Float32 = Plain<float, Floats>;
using Float64 = Plain<double, Doubles>;

struct BFloat16 {
  using Stored = uint16_t;
  using Real = float;
  using Vector = Floats;
  static constexpr int kLanes = kFloats;
  static POSENC_INLINE Floats broadcast(float x) { return x + Floats{}; }
  static POSENC_INLINE Floats read(const uint16_t* from) { return floats_of(widen(from) << 16); }
  // The values are already rounded, so a shift is enough.
  static POSENC_INLINE void write(uint16_t* to, Floats x) { narrow(to, bits_of(x) >> 16); }
  // For sums and products of bfloat16 values: their NaNs have no low bits set, so that the addition
  // cannot carry a NaN into another number.
  static POSENC_INLINE Floats round(Floats x) {
    const Words u = bits_of(x);
    return floats_of((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000);
  }
  static POSENC_INLINE Floats round_any(Floats x) {
    return floats_of(select(x == x, bits_of(round(x)), Words{} + 0x7fc00000));
  }
};

// The same, two vectors at a time, with even and odd elements apart, as they lie in 32-bit words:
// widening is then a shift for the even and a mask for the odd ones, and so is packing.
struct Pair {
  Floats even, odd;
};
POSENC_INLINE Pair operator*(Pair a, Pair b) { return {a.even * b.even, a.odd * b.odd}; }
POSENC_INLINE Pair operator+(Pair a, Pair b) { return {a.even + b.even, a.odd + b.odd}; }
POSENC_INLINE Pair spread(uint64_t bits, Pair factor) {
  Ints even;
  for (int i = 0; i < kFloats; ++i) even[i] = static_cast<int32_t>(1u << (2 * i));
  const Ints every = static_cast<int32_t>(bits) + Ints{};
  const Ints at_even = (every & even) != 0, at_odd = (every & (even << 1)) != 0;
  return {reinterpret_cast<Floats>(at_even & reinterpret_cast<Ints>(factor.even)),
          reinterpret_cast<Floats>(at_odd & reinterpret_cast<Ints>(factor.odd))};
}

struct BFloat16Pairs {
  using Stored = uint16_t;
  using Real = float;
  using Vector = Pair;
  static constexpr int kLanes = 2 * kFloats;
  static POSENC_INLINE Pair broadcast(float x) { return {x + Floats{}, x + Floats{}}; }
  static POSENC_INLINE Pair read(const uint16_t* from) {
    const Words u = load<Words>(from);
    return {floats_of(u << 16), floats_of(u & 0xffff0000)};
  }
  static POSENC_INLINE void write(uint16_t* to, Pair x) {
    store(to, bits_of(x.even) >> 16 | (bits_of(x.odd) & 0xffff0000));
  }
  static POSENC_INLINE Pair round(Pair x) {
    return {BFloat16::round(x.even), BFloat16::round(x.odd)};
  }
  static POSENC_INLINE Pair round_any(Pair x) {
    return {BFloat16::round_any(x.even), BFloat16::round_any(x.odd)};
  }
};

struct Float16 {
  using Stored = uint16_t;
  using Real = float;
  using Vector = Floats;
  static constexpr int kLanes = kFloats;
  static POSENC_INLINE Floats broadcast(float x) { return x + Floats{}; }
  static POSENC_INLINE Floats read(const uint16_t* from) { return read_half(from); }
  static POSENC_INLINE void write(uint16_t* to, Floats x) { write_half(to, x); }
  static POSENC_INLINE Floats round(Floats x) { return round_to_half(x); }
  static POSENC_INLINE Floats round_any(Floats x) { return round(x); }
};

}  // namespace
}  // namespace posenc::kernels::embed::POSENC_ISA
