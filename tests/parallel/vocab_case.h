#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "posenc/functional/vocab_parallel.h"
#include "posenc/parallel/vocab_shard.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc::testing {

namespace F = posenc::functional;

/// ids -> table * sqrt(D) -> body -> tanh -> output layer -> loss, on whole tensors.
struct VocabCase {
  int64_t vocab = 0;
  bool tied = false;
  double smoothing = 0.0;
  at::Tensor table, body, output, bias;  ///< output is not used if tied
  at::Tensor ids, targets;               ///< (N)
  std::optional<int64_t> padding_idx = 3;

  static constexpr int64_t kWidth = 6, kTokens = 24, kIgnore = 0;

  VocabCase(int64_t vocab_size, bool is_tied, double label_smoothing, at::ScalarType type)
      : vocab(vocab_size), tied(is_tied), smoothing(label_smoothing) {
    const at::TensorOptions options(type);
    table = at::randn({vocab, kWidth}, options);
    body = at::randn({kWidth, kWidth}, options);
    output = at::randn({vocab, kWidth}, options);
    bias = at::randn({vocab}, options);
    ids = at::randint(vocab, {kTokens}, at::kLong);
    targets = at::randint(vocab, {kTokens}, at::kLong);
    targets.narrow(0, 0, 4).fill_(kIgnore);
    if (vocab <= 3) padding_idx = std::nullopt;
  }

  F::TokenCrossEntropyFuncOptions loss_options() const {
    return F::TokenCrossEntropyFuncOptions().label_smoothing(smoothing).ignore_index(kIgnore);
  }
};

/// The loss and the gradients of one process.
struct VocabResult {
  at::Tensor loss, table, body, output, bias;
};

/// By ATen's operations on the whole tensors.
inline VocabResult expected_result(const VocabCase& c) {
  const auto leaf = [](const at::Tensor& t) { return t.detach().clone().requires_grad_(); };
  const at::Tensor table = leaf(c.table), body = leaf(c.body), output = leaf(c.output),
                   bias = leaf(c.bias);
  const at::Tensor x =
      at::embedding(table, c.ids, c.padding_idx.value_or(-1)) * std::sqrt(VocabCase::kWidth);
  const at::Tensor logits =
      at::linear(at::tanh(at::linear(x, body)), c.tied ? table : output, bias);
  const at::Tensor loss = at::cross_entropy_loss(logits, c.targets, {}, at::Reduction::Mean,
                                                 VocabCase::kIgnore, c.smoothing);
  loss.backward();
  return {loss.detach(), table.grad(), body.grad(), output.grad(), bias.grad()};
}

/// By the functions under test on this process's rows, of the tokens [first, last) with Own and of
/// all tokens with Same. Gradients of shards are this process's rows.
inline VocabResult split_result(const VocabCase& c, const RankGroup& group, RankTokens tokens,
                                int64_t first = 0, int64_t last = VocabCase::kTokens) {
  const VocabShard shard = VocabShard::of(c.vocab, group.rank(), group.size());
  const auto leaf = [](const at::Tensor& t) { return t.detach().clone().requires_grad_(); };
  const auto rows = [&](const at::Tensor& t) {
    return leaf(t.narrow(0, shard.first, shard.rows()));
  };
  const at::Tensor table = rows(c.table), body = leaf(c.body), output = rows(c.output),
                   bias = rows(c.bias);
  const at::Tensor ids = c.ids.narrow(0, first, last - first);
  const at::Tensor targets = c.targets.narrow(0, first, last - first);
  const at::Tensor x = F::vocab_parallel_embedding(ids, table, shard, group,
                                                   F::VocabParallelEmbeddingFuncOptions()
                                                       .scale(Scale::SqrtDim)
                                                       .padding_idx(c.padding_idx)
                                                       .tokens(tokens));
  const at::Tensor logits = F::vocab_parallel_output(at::tanh(at::linear(x, body)),
                                                     c.tied ? table : output, bias, group, tokens);
  const at::Tensor loss =
      F::vocab_parallel_cross_entropy(logits, targets, shard, group, c.loss_options(), tokens);
  loss.backward();
  return {loss.detach(), table.grad(), body.grad(), output.grad(), bias.grad()};
}

/// The shards' rows of all processes, in the order of their ranks.
inline at::Tensor joined(const std::vector<VocabResult>& ranks, at::Tensor VocabResult::*which) {
  std::vector<at::Tensor> rows;
  for (const VocabResult& rank : ranks) rows.push_back(rank.*which);
  return at::cat(rows);
}

}  // namespace posenc::testing
