// Dropout on its own: each element times the factor where its bit is set, else times 0. Compiled
// once per instruction set, with -ffp-contract=off.
//
// The reference path is at::dropout, which draws numbers one by one into a tensor, divides that by
// 1 - p and multiplies by it: three passes over memory and a serial generator. This gives the same
// bits in one pass over the data and its mask of one bit per element.
#include "kernels/isa/embed_kinds.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

template <typename K>
void drop(const DropoutRequest& d, int64_t begin, int64_t end) {
  using T = typename K::Stored;
  const T* const x = static_cast<const T*>(d.x);
  T* const out = static_cast<T*>(d.out);
  const auto factor = K::broadcast(d.kept.factor);
  const auto line = [&](const T* from, T* to, uint64_t kept) {
#pragma GCC unroll 4
    for (int i = 0; i < K::kLine; i += K::kLanes)
      K::Element::write(to + i, K::rounded(K::Element::read(from + i) * spread(kept >> i, factor)));
  };
  int64_t j = begin;
  for (; j + K::kLine <= end; j += K::kLine) line(x + j, out + j, bits_from(d.kept.bits, j));
  if (j == end) return;
  const size_t rest = sizeof(T) * static_cast<size_t>(end - j);
  T padded[K::kLine] = {}, result[K::kLine];
  memcpy(padded, x + j, rest);
  line(padded, result, bits_from(d.kept.bits, j));
  memcpy(out + j, result, rest);
}

}  // namespace

const DropoutKernels dropout_kernels = {
    {drop<Kind<Float32, Float32, true>>, drop<Kind<Float64, Float64, true>>,
     drop<Kind<BFloat16Pairs, BFloat16Pairs, true>>, drop<Kind<Float16, Float16, true>>}};

}  // namespace posenc::kernels::embed::POSENC_ISA
