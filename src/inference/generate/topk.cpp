#include "inference/generate/topk.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/torch_internals/parts.h"
#include "kernels/dispatch.h"
#include "kernels/inference.h"

namespace posenc::functional {
namespace {

bool has_kernel(const at::Tensor& logits) {
  return logits.is_cpu() && logits.scalar_type() == at::kFloat && logits.is_contiguous();
}

// How many rows of that many logits are the least work per thread.
int64_t grain(int64_t logits) {
  constexpr int64_t kGrainLogits = 1 << 14;
  return std::max<int64_t>(1, kGrainLogits / std::max<int64_t>(1, logits));
}

}  // namespace

LogSumExp log_sum_exp(const at::Tensor& logits) {
  if (!has_kernel(logits)) {
    const at::Tensor largest = logits.amax(1);
    return {largest, (logits - largest.unsqueeze(1)).logsumexp(1)};
  }
  const int64_t rows = logits.size(0), vocab = logits.size(1);
  LogSumExp sum = {at::empty({rows}, at::kFloat), at::empty({rows}, at::kFloat)};
  const auto* const x = logits.const_data_ptr<float>();
  auto* const largest = sum.largest.data_ptr<float>();
  auto* const rest = sum.rest.data_ptr<float>();
  const auto log_sum_exp = kernels::chosen_inference().topk.log_sum_exp;
  torch_internals::parallel_parts(0, rows, grain(vocab), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto of_row = log_sum_exp(x + row * vocab, vocab);
      largest[row] = of_row.largest;
      rest[row] = of_row.rest;
    }
  });
  return sum;
}

TopScores beam_topk(const at::Tensor& logits, const LogSumExp& sum, const at::Tensor& before,
                    int64_t group, int64_t count) {
  const int64_t groups = logits.size(0) / group, vocab = logits.size(1);
  const at::Tensor base = before - sum.rest;
  if (!has_kernel(logits)) {
    const at::Tensor scores = (logits - sum.largest.unsqueeze(1)) + base.unsqueeze(1);
    const auto [best, indices] = scores.view({groups, group * vocab}).topk(count, 1);
    return {best, indices};
  }
  TopScores top = {at::empty({groups, count}, at::kFloat), at::empty({groups, count}, at::kLong)};
  const auto* const x = logits.const_data_ptr<float>();
  const auto* const shift = sum.largest.const_data_ptr<float>();
  const auto* const bases = base.const_data_ptr<float>();
  auto* const scores = top.scores.data_ptr<float>();
  auto* const indices = top.indices.data_ptr<int64_t>();
  const auto insert = kernels::chosen_inference().topk.topk_insert;
  torch_internals::parallel_parts(0, groups, grain(group * vocab), [&](int64_t begin, int64_t end) {
    std::vector<kernels::inference::TopkEntry> best(static_cast<size_t>(count));
    for (int64_t b = begin; b < end; ++b) {
      best.assign(best.size(), {-std::numeric_limits<float>::infinity(), 0});
      for (int64_t k = 0; k < group; ++k) {
        const int64_t row = b * group + k;
        insert(x + row * vocab, vocab, shift[row], bases[row], k * vocab, best.data(), count);
      }
      for (int64_t i = 0; i < count; ++i) {
        scores[b * count + i] = best[i].score;
        indices[b * count + i] = best[i].index;
      }
    }
  });
  return top;
}

}  // namespace posenc::functional
