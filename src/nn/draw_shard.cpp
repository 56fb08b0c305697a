#include "nn/draw_shard.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>

namespace posenc {

void draw_shard(const at::Tensor& rows, const VocabShard& shard,
                const std::function<void(const at::Tensor& block)>& draw) {
  if (shard.rows() == shard.vocab) return draw(rows);
  const at::NoGradGuard no_grad;
  // ATen's normal_() draws 16 numbers at a time, and draws the last 16 of a tensor again if its
  // size is not a multiple of 16. So the number of rows in a block is a multiple of 16, except for
  // the last block, which may be longer and has at least 16 elements.
  constexpr int64_t kBlock = 4096;
  for (int64_t begin = 0, end = 0; begin < shard.vocab; begin = end) {
    end = shard.vocab - begin < 2 * kBlock ? shard.vocab : begin + kBlock;
    at::DimVector sizes(rows.sizes());
    sizes[0] = end - begin;
    const at::Tensor block = at::empty(sizes, rows.options().requires_grad(false));
    draw(block);
    const int64_t from = std::max(begin, shard.first), to = std::min(end, shard.last);
    if (from < to)
      rows.narrow(0, from - shard.first, to - from).copy_(block.narrow(0, from - begin, to - from));
  }
}

}  // namespace posenc
