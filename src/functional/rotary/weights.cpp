#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>

#include "posenc/functional/rotary.h"

namespace posenc::functional {
namespace {

using rotary::Pairing;

// (heads, rotary_dim, ...): channels 0 2 4 ... 1 3 5 ... of each head, or the way back.
at::Tensor reordered(const at::Tensor& heads, Pairing to) {
  const int64_t n = heads.size(1) / 2;
  std::vector<int64_t> sizes = heads.sizes().vec();
  const bool to_halves = to == Pairing::Halves;
  sizes[1] = to_halves ? n : 2;
  sizes.insert(sizes.begin() + 2, to_halves ? 2 : n);
  return heads.reshape(sizes).transpose(1, 2).flatten(1, 2);
}

}  // namespace

at::Tensor convert_rotary_weight(const at::Tensor& weight, int64_t heads, rotary::Pairing from,
                                 rotary::Pairing to, int64_t rotary_dim) {
  for (const Pairing pairing : {from, to}) {
    TORCH_CHECK_VALUE(pairing == Pairing::Halves || pairing == Pairing::Adjacent,
                      "[convert_rotary_weight] pairings must be Halves and Adjacent. Got another");
  }
  TORCH_CHECK_VALUE(weight.defined() && (weight.dim() == 1 || weight.dim() == 2) && heads > 0 &&
                        weight.size(0) % heads == 0,
                    "[convert_rotary_weight] weight must be (heads * Dh, in) or (heads * Dh) with ",
                    heads, " heads. Got ",
                    weight.defined() ? c10::str(weight.sizes()) : "no tensor");
  const int64_t width = weight.size(0) / heads;
  if (rotary_dim == 0) rotary_dim = width;
  TORCH_CHECK_VALUE(rotary_dim > 0 && rotary_dim <= width && rotary_dim % 2 == 0,
                    "[convert_rotary_weight] rotary_dim must be even and at most ", width, ". Got ",
                    rotary_dim);
  if (from == to) return weight.clone();
  std::vector<int64_t> sizes = weight.sizes().vec();
  sizes[0] = width;
  sizes.insert(sizes.begin(), heads);
  const at::Tensor by_head = weight.reshape(sizes);
  const at::Tensor rotated = reordered(by_head.slice(1, 0, rotary_dim), to);
  return at::cat({rotated, by_head.slice(1, rotary_dim)}, 1).reshape(weight.sizes());
}

}  // namespace posenc::functional
