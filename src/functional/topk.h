#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::functional {

/// log of the sum of exp over the last axis of (R, V): largest + rest, (R) each. They are kept
/// apart because logits - largest - rest loses nothing of a log probability close to 0.
struct LogSumExp {
  at::Tensor largest, rest;
};
LogSumExp log_sum_exp(const at::Tensor& logits);

/// The best scores of some rows, (B, count), the best first, and where they stand among those of
/// their rows: row * V + column. Of equal scores the first one.
struct TopScores {
  at::Tensor scores, places;
};

/// The `count` largest before + (logits - log sum) of each `group` rows. logits: (B * group, V),
/// before: (B * group), both float32. One pass over memory on the CPU; elsewhere ATen's.
TopScores beam_topk(const at::Tensor& logits, const LogSumExp& sum, const at::Tensor& before,
                    int64_t group, int64_t count);

}  // namespace posenc::functional
