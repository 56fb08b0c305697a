#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace posenc {

/// How the two channels of a rotary pair lie in a head.
enum class PairOrder { Adjacent, Halves };

/// `weight` (heads * Dh, ...) with the first `rotary_dim` channels of each head, an even number,
/// reordered: 0 2 4 ... 1 3 5 ... for Halves, the inverse of that for Adjacent.
at::Tensor reorder_head_channels(const at::Tensor& weight, int64_t heads, int64_t rotary_dim,
                                 PairOrder to);

}  // namespace posenc
