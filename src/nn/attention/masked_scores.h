#pragma once

#include "posenc/functional/attention_mask.h"

namespace posenc {

/// Scores (B, H, L, S) with a mask: those of keys that a query may not attend to become the lowest
/// number, so that a query that may not attend to any attends to all alike.
at::Tensor masked_scores(const at::Tensor& scores, const AttentionMask& mask);

}  // namespace posenc
