#include <c10/util/Exception.h>

#include "core/head_channels.h"
#include "posenc/positions/functional/rotary.h"

namespace posenc::functional {

using rotary::Pairing;

at::Tensor convert_rotary_weight(const at::Tensor& weight, int64_t heads, rotary::Pairing from,
                                 rotary::Pairing to, int64_t rotary_dim) {
  for (const Pairing pairing : {from, to}) {
    TORCH_CHECK_VALUE(pairing == Pairing::Halves || pairing == Pairing::Adjacent,
                      "[convert_rotary_weight] pairings must be Halves and Adjacent");
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
  return reorder_head_channels(weight, heads, rotary_dim,
                               to == Pairing::Halves ? PairOrder::Halves : PairOrder::Adjacent);
}

}  // namespace posenc::functional
