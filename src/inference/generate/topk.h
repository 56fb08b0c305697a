#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::functional {

/// log(sum(exp(logits))) over the last axis of (R, V), as largest + rest, (R) each. They are kept
/// separate because logits - largest - rest keeps full precision for log probabilities close to 0.
struct LogSumExp {
  at::Tensor largest, rest;
};
LogSumExp log_sum_exp(const at::Tensor& logits);

/// The best scores of each group of rows, (B, count), in descending order, and their indices within
/// the group: row * V + column. Equal scores are ordered by index.
struct TopScores {
  at::Tensor scores, indices;
};

/// The `count` largest values of before + (logits - log sum) in each group of `group` rows. logits:
/// (B * group, V), before: (B * group), both float32. One pass over memory on the CPU; other
/// devices use ATen.
TopScores beam_topk(const at::Tensor& logits, const LogSumExp& sum, const at::Tensor& before,
                    int64_t group, int64_t count);

}  // namespace posenc::functional
