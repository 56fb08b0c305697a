#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::functional {

/// log of the sum of exp over the last axis: (R, V)  ->  (R), float32.
at::Tensor log_sum_exp(const at::Tensor& logits);

/// The best scores of some rows, (B, count), the best first, and where they stand among those of
/// their rows: row * V + column. Of equal scores the first one.
struct TopScores {
  at::Tensor scores, places;
};

/// The `count` largest logits[r][v] + base[r] of each `group` rows. logits: (B * group, V), base:
/// (B * group), both float32. One pass over memory on the CPU; elsewhere ATen's.
TopScores top_scores(const at::Tensor& logits, const at::Tensor& base, int64_t group,
                     int64_t count);

}  // namespace posenc::functional
