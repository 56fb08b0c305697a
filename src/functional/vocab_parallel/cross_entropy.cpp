#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "functional/vocab_parallel/embedding.h"
#include "functional/vocab_parallel/exchange.h"
#include "parallel/collectives.h"
#include "posenc/functional/vocab_parallel.h"
#include "torch_internals/backward_node.h"
#include "torch_internals/shortcut.h"

namespace posenc::functional {
namespace {

constexpr const char* kLoss = "vocab_parallel_cross_entropy";
constexpr int64_t kIgnored = -1;  // as the target of an ignored token
constexpr double kNoMaximum = -std::numeric_limits<double>::infinity();

// Calls `work` for blocks of rows that fit in the cache, as each takes several passes.
template <typename Work>
void for_row_blocks(const at::Tensor& logits, const Work& work) {
  constexpr int64_t kBlock = 1 << 17;  // elements
  const int64_t rows = logits.size(0);
  const int64_t step = std::max<int64_t>(1, kBlock / logits.size(1));
  for (int64_t begin = 0; begin < rows; begin += step) work(begin, std::min(step, rows - begin));
}

at::ScalarType computed_type(const at::Tensor& logits) {
  return logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// The tensors that the gradient needs besides the logits. All have a row for each token.
struct TargetRows {
  at::Tensor column;    // (N, 1), the target's column here, or any
  at::Tensor is_own;    // (N, 1), whether the target has a column here
  at::Tensor is_valid;  // (N), whether the target is not ignored
  double smoothing;     // e
  double each;          // e / V
};

TargetRows target_rows(const at::Tensor& targets, const VocabShard& shard, double smoothing) {
  const at::Tensor is_own = (targets >= shard.first) & (targets < shard.last);
  return {at::where(is_own, targets - shard.first, 0).unsqueeze(1), is_own.unsqueeze(1),
          targets != kIgnored, smoothing, smoothing / static_cast<double>(shard.vocab)};
}

// An infinite maximum cannot be subtracted.
at::Tensor finite(const at::Tensor& maximum) {
  return maximum.masked_fill(maximum == kNoMaximum, 0.0);
}

// The three numbers that this process sends for each token, (N, 3): its largest logit m, the sum of
// exp(z - m), and its part of (1 - e) (z_y - m) + e / V sum (z - m).
at::Tensor own_parts(const at::Tensor& logits, const TargetRows& rows) {
  const auto type = computed_type(logits);
  const at::Tensor parts = at::zeros({logits.size(0), 3}, logits.options().dtype(type));
  if (logits.size(1) == 0) {
    parts.select(1, 0).fill_(kNoMaximum);
    return parts;
  }
  for_row_blocks(logits, [&](int64_t begin, int64_t count) {
    const at::Tensor z = logits.narrow(0, begin, count).to(type);
    const at::Tensor part = parts.narrow(0, begin, count);
    const at::Tensor largest = z.amax(1);
    const at::Tensor from_largest = z - finite(largest).unsqueeze(1);
    const at::Tensor own = from_largest.gather(1, rows.column.narrow(0, begin, count))
                               .mul_(1.0 - rows.smoothing)
                               .masked_fill_(~rows.is_own.narrow(0, begin, count), 0.0)
                               .squeeze(1);
    if (rows.each != 0.0) own.add_(from_largest.sum(1), rows.each);
    part.select(1, 0).copy_(largest);
    part.select(1, 1).copy_(from_largest.exp_().sum(1));
    part.select(1, 2).copy_(own);
  });
  return parts;
}

// The share of the target distribution that each process's columns have, (W, N).
at::Tensor shares_of_ranks(const at::Tensor& targets, const VocabShard& shard,
                           const TargetRows& rows, int64_t ranks, at::ScalarType type) {
  const int64_t most = VocabShard::of(shard.vocab, 0, ranks).rows();
  const at::Tensor owner = at::div(targets, most, "floor");
  const at::Tensor rank = at::arange(ranks, targets.options()).unsqueeze(1);  // (W, 1)
  const at::Tensor columns = (shard.vocab - rank * most).clamp(0, most).to(type);
  const at::Tensor target = (owner.unsqueeze(0) == rank).to(type);  // (W, N)
  return target * (1.0 - rows.smoothing) + columns * rows.each;
}

// The normaliser of each token in two numbers, as their sum would round away the smaller one.
struct Normaliser {
  at::Tensor maximum;  // (N), M
  at::Tensor log_sum;  // (N), log sum_v exp(z_v - M)
};

struct TokenLosses {
  Normaliser normaliser;
  at::Tensor loss;  // (N)
};

// From the parts of all processes, (W, N, 3), in the order of the ranks: the same bits on each.
TokenLosses combined(const at::Tensor& parts, const at::Tensor& shares) {
  const at::Tensor maxima = parts.select(2, 0);  // (W, N)
  const at::Tensor maximum = maxima.amax(0);
  const at::Tensor sum = (parts.select(2, 1) * (maxima - maximum).exp_()).sum(0);
  const at::Tensor log_sum = sum.log();
  // M - (1 - e) z_y - e / V sum z, as the shares add up to 1
  const at::Tensor distance = (shares * (maximum - finite(maxima)) - parts.select(2, 2)).sum(0);
  return {{maximum, log_sum}, distance + log_sum};
}

struct VocabCrossEntropyBackward : torch_internals::BackwardNode {
  VocabCrossEntropyBackward() : BackwardNode("VocabCrossEntropyBackward") {}
  torch_internals::Gradients backward(const at::Tensor& grad) override;
  void release() override { logits.reset_data(); }

  torch_internals::SavedVariable logits;
  TargetRows rows;
  Normaliser normaliser;
  at::Tensor weight;  // (N), 1 / the number of targets, 0 for an ignored one
};

// weight_i (softmax(z_i) - (1 - e) onehot(y_i) - e / V)
torch_internals::Gradients VocabCrossEntropyBackward::backward(const at::Tensor& grad) {
  TORCH_CHECK_VALUE(!at::GradMode::is_enabled(), "[", kLoss,
                    "] the gradient cannot be differentiated again: create_graph must be false. "
                    "Got true");
  const at::Tensor saved = logits.unpack();
  const auto type = computed_type(saved);
  const at::Tensor out = at::empty(saved.sizes(), saved.options().requires_grad(false));
  if (saved.size(1) == 0) return {out};
  const at::Tensor factor = (weight * grad.to(type)).unsqueeze(1);  // (N, 1)
  for_row_blocks(saved, [&](int64_t begin, int64_t count) {
    const auto of_block = [&](const at::Tensor& t) { return t.narrow(0, begin, count); };
    const at::Tensor target = of_block(rows.is_own).to(type) * (rows.smoothing - 1.0);  // (n, 1)
    const at::Tensor p = of_block(saved).to(type) - of_block(normaliser.maximum).unsqueeze(1);
    p.sub_(of_block(normaliser.log_sum).unsqueeze(1)).exp_();
    if (rows.each != 0.0) p.sub_(rows.each);
    p.scatter_add_(1, of_block(rows.column), target);
    of_block(out).copy_(p.mul_(of_block(factor)));
  });
  return {out};
}

// Returns the targets, of which the ignored ones are kIgnored.
at::Tensor checked_targets(const at::Tensor& logits, const at::Tensor& targets,
                           const VocabShard& shard, const RankGroup& group,
                           const TokenCrossEntropyFuncOptions& options, RankTokens tokens) {
  check_shard(kLoss, shard, group);
  const double smoothing = options.label_smoothing();
  TORCH_CHECK_VALUE(smoothing >= 0.0 && smoothing <= 1.0, "[", kLoss,
                    "] label_smoothing must lie in [0, 1]. Got ", smoothing);
  TORCH_CHECK_TYPE(logits.is_floating_point(), "[", kLoss, "] logits must be real numbers. Got ",
                   logits.scalar_type());
  TORCH_CHECK_TYPE(targets.scalar_type() == at::kLong, "[", kLoss,
                   "] targets must be ids, int64. Got ", targets.scalar_type());
  TORCH_CHECK_VALUE(logits.dim() > 0 && logits.size(-1) == shard.rows(), "[", kLoss,
                    "] logits must be the shard's columns, (..., ", shard.rows(), "). Got ",
                    logits.sizes());
  TORCH_CHECK_VALUE(
      tokens == RankTokens::Own || logits.sizes().slice(0, logits.dim() - 1) == targets.sizes(),
      "[", kLoss, "] logits must be (..., ", shard.rows(), ") and targets (...). Got ",
      logits.sizes(), " and ", targets.sizes());
  const at::Tensor is_ignored = targets == options.ignore_index();
  check_range(kLoss, "target", targets.masked_fill(is_ignored, 0), shard.vocab);
  return targets.masked_fill(is_ignored, kIgnored);
}

}  // namespace

at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                                        const VocabShard& shard, const RankGroup& group,
                                        const TokenCrossEntropyFuncOptions& options,
                                        RankTokens tokens) {
  at::Tensor own;
  const RowExchange exchange = start_exchange(group, tokens, kLoss, [&] {
    own = checked_targets(logits, targets, shard, group, options, tokens);
    if (shard.rows() == 0) return RowCounts(own.numel());  // no columns, so no rows to count
    return RowCounts(own.numel(), logits.numel() / shard.rows());
  });
  if (group.size() == 1)
    return token_cross_entropy(logits, tokens == RankTokens::Own ? targets.reshape({-1}) : targets,
                               options);
  const at::Tensor all = gather_ids(exchange, own, shard.vocab);          // (N)
  const at::Tensor matrix = logits.reshape({all.size(0), shard.rows()});  // (N, last - first)
  const bool records = torch_internals::is_recorded(matrix);
  const at::Tensor values = matrix.detach();
  const TargetRows rows = target_rows(all, shard, options.label_smoothing());
  const at::Tensor parts = parallel::all_gather(group, own_parts(values, rows), kLoss);
  const TokenLosses tokens_of =
      combined(parts, shares_of_ranks(all, shard, rows, group.size(), parts.scalar_type()));
  const at::Tensor count = rows.is_valid.sum();
  const at::Tensor sum = tokens_of.loss.masked_fill(~rows.is_valid, 0.0).sum();
  const at::Tensor loss = (sum / count).to(logits.scalar_type());
  if (records) {
    auto node = torch_internals::make_node<VocabCrossEntropyBackward>();
    node->logits = torch_internals::save_for_backward(matrix);
    node->rows = rows;
    node->normaliser = tokens_of.normaliser;
    node->weight = at::where(rows.is_valid, 1.0 / count.to(parts.scalar_type()), 0.0);
    torch_internals::set_history(loss, std::move(node), matrix);
  }
  return loss;
}

}  // namespace posenc::functional
