// Shared by the forward and backward kernels: access to the dropout mask, and the list of types.
// Included by the kernel sources, inside the instruction set's own namespace.
#pragma once
#include "kernels/embed.h"
#include "kernels/isa/elements.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

// Bits [at, at + 57) of the mask; a line has at most 32 elements.
POSENC_INLINE uint64_t bits_from(const uint8_t* bits, int64_t at) {
  uint64_t word;
  memcpy(&word, bits + (at >> 3), sizeof word);
  return word >> (at & 7);
}

// One Type of embed.h: its elements, those of its table, and whether each operation rounds to it,
// as ATen's do, or only the last one.
template <typename E, typename TableElement, bool round_each>
struct Kind {
  using Element = E;
  using Table = TableElement;
  using Stored = typename E::Stored;
  using Real = typename E::Real;
  using Vector = typename E::Vector;
  static constexpr int kLanes = E::kLanes;
  static constexpr int kLine = kLineBytes / static_cast<int>(sizeof(Stored));
  static POSENC_INLINE Vector rounded(Vector x) { return round_each ? E::round(x) : x; }
  static POSENC_INLINE Vector result(Vector x) { return round_each ? x : E::round_any(x); }
  static POSENC_INLINE Vector broadcast(double x) {  // makes any NaN the canonical one
    return E::broadcast(static_cast<Real>(x == x ? x : __builtin_nan("")));
  }
};

// f<Kind> for each Type, in the order of the enumeration.
#define POSENC_FOR_EACH_TYPE(f)                 \
  {f<Kind<Float32, Float32, true>>,             \
   f<Kind<Float64, Float64, true>>,             \
   f<Kind<BFloat16Pairs, BFloat16Pairs, true>>, \
   f<Kind<Float16, Float16, true>>,             \
   f<Kind<BFloat16, Float32, false>>,           \
   f<Kind<Float16, Float32, false>>}

}  // namespace
}  // namespace posenc::kernels::embed::POSENC_ISA
