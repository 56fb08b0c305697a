#include "core/head_channels.h"

#include <ATen/ops/cat.h>

#include <vector>

namespace posenc {

at::Tensor reorder_head_channels(const at::Tensor& weight, int64_t heads, int64_t rotary_dim,
                                 PairOrder to) {
  const int64_t pairs = rotary_dim / 2;
  const bool to_halves = to == PairOrder::Halves;
  const at::Tensor by_head = weight.unflatten(0, {heads, weight.size(0) / heads});
  const std::vector<int64_t> pair_axes =
      to_halves ? std::vector<int64_t>{pairs, 2} : std::vector<int64_t>{2, pairs};
  const at::Tensor rotating =
      by_head.slice(1, 0, rotary_dim)
          .unflatten(1, pair_axes)  // (heads, pairs, 2, ...) or (.., 2, pairs, ..)
          .transpose(1, 2)
          .flatten(1, 2);
  return at::cat({rotating, by_head.slice(1, rotary_dim)}, 1).reshape(weight.sizes());
}

}  // namespace posenc
