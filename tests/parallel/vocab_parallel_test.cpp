// Split vocabularies compared with ATen's operations on the whole ones.

#include "posenc/functional/vocab_parallel.h"

#include <torch/csrc/autograd/autograd.h>

#include "parallel/vocab_case.h"
#include "support/rank_threads.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::expected_result;
using testing::joined;
using testing::Op;
using testing::split_result;
using testing::VocabCase;
using testing::VocabResult;
using testing::within;

namespace F = posenc::functional;

// The token [first, last) of a rank that has its own: unequal numbers, and none on the last rank.
std::pair<int64_t, int64_t> own_tokens(int64_t rank, int64_t ranks) {
  if (ranks == 1) return {0, VocabCase::kTokens};
  const int64_t busy = ranks - 1, all = VocabCase::kTokens;
  const auto begin = [&](int64_t r) { return r >= busy ? all : r * r * all / (busy * busy); };
  return {begin(rank), rank == busy ? all : begin(rank + 1)};
}

struct VocabParameters {
  RankTokens tokens;
  int ranks;
  at::ScalarType type;
};

class VocabParallel : public ::testing::TestWithParam<VocabParameters> {
 protected:
  static std::vector<VocabResult> run(const VocabCase& c) {
    const auto [tokens, ranks, type] = GetParam();
    std::vector<VocabResult> results(ranks);
    testing::run_ranks(ranks, [&, tokens = tokens](const RankGroup& group) {
      const auto [first, last] = tokens == RankTokens::Own
                                     ? own_tokens(group.rank(), group.size())
                                     : std::pair<int64_t, int64_t>(0, VocabCase::kTokens);
      results[group.rank()] = split_result(c, group, tokens, first, last);
    });
    return results;
  }
};

std::vector<VocabParameters> vocab_parameters() {
  std::vector<VocabParameters> all;
  for (const auto tokens : {RankTokens::Same, RankTokens::Own})
    for (const int ranks : {1, 2, 3, 4})
      for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
        all.push_back({tokens, ranks, type});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, VocabParallel, ::testing::ValuesIn(vocab_parameters()),
                         [](const auto& info) {
                           return std::string(info.param.tokens == RankTokens::Own ? "Own"
                                                                                   : "Same") +
                                  std::to_string(info.param.ranks) + toString(info.param.type);
                         });

// 43 is not divisible by 2, 3 or 4; of 3 rows the last ranks have none.
TEST_P(VocabParallel, LossAndGradientsAreThoseOfOneProcess) {
  for (const int64_t vocab : {43, 3}) {
    for (const bool tied : {false, true}) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(c10::str("V ", vocab, " tied ", tied, " smoothing ", smoothing));
        const VocabCase c(vocab, tied, smoothing, GetParam().type);
        const VocabResult expected = expected_result(c);
        const auto ranks = run(c);
        EXPECT_TRUE(within(Op::RankSums, ranks[0].loss, expected.loss));
        EXPECT_TRUE(within(Op::RankSums, joined(ranks, &VocabResult::table), expected.table));
        EXPECT_TRUE(within(Op::RankSums, joined(ranks, &VocabResult::bias), expected.bias));
        if (!tied) {
          EXPECT_TRUE(within(Op::RankSums, joined(ranks, &VocabResult::output), expected.output));
        }
        at::Tensor body = ranks[0].body;
        for (size_t r = 1; r < ranks.size(); ++r) {
          EXPECT_TRUE(bit_equal(ranks[r].loss, ranks[0].loss));
          if (GetParam().tokens == RankTokens::Own) {
            body = body + ranks[r].body;
          } else {
            EXPECT_TRUE(bit_equal(ranks[r].body, ranks[0].body));
          }
        }
        EXPECT_TRUE(within(Op::RankSums, body, expected.body));
      }
    }
  }
}

TEST(VocabParallelLoss, OneProcessHasTheBitsOfTokenCrossEntropy) {
  const VocabCase c(43, false, 0.1, at::kFloat);
  const VocabShard whole{0, 43, 43};
  const at::Tensor logits = at::randn({24, 43});
  EXPECT_TRUE(
      bit_equal(F::vocab_parallel_cross_entropy(logits, c.targets, whole, {}, c.loss_options()),
                F::token_cross_entropy(logits, c.targets, c.loss_options())));
  EXPECT_TRUE(bit_equal(F::vocab_parallel_embedding(c.ids, c.table, whole, {}),
                        at::embedding(c.table, c.ids)));
  EXPECT_TRUE(bit_equal(F::vocab_parallel_output(c.body, c.output, c.bias, {}),
                        at::linear(c.body, c.output, c.bias)));
}

TEST(VocabParallelLoss, IsNaNWithoutTargetsAndHasNoGradientThen) {
  for (const double smoothing : {0.0, 0.1}) {
    testing::run_ranks(2, [&](const RankGroup& group) {
      const VocabShard shard = VocabShard::of(7, group.rank(), 2);
      const at::Tensor logits = at::ones({3, shard.rows()}).requires_grad_();
      const at::Tensor loss = F::vocab_parallel_cross_entropy(
          logits, at::full({3}, -100, at::kLong), shard, group,
          F::TokenCrossEntropyFuncOptions().label_smoothing(smoothing));
      EXPECT_TRUE(loss.isnan().item<bool>());
      loss.backward();
      EXPECT_TRUE(bit_equal(logits.grad(), at::zeros_like(logits)));
    });
  }
}

// No process has a token, or only one has.
TEST(VocabParallelLoss, OwnTokensMayAllBeMissing) {
  for (const int64_t tokens : {0, 2}) {
    testing::run_ranks(3, [&](const RankGroup& group) {
      const int64_t own = group.rank() == 1 ? tokens : 0;
      const VocabShard shard = VocabShard::of(5, group.rank(), 3);
      const at::Tensor table = at::ones({shard.rows(), 4}).requires_grad_();
      const at::Tensor ids = at::full({own, 1}, 4, at::kInt);
      const auto options = F::VocabParallelEmbeddingFuncOptions().tokens(RankTokens::Own);
      const at::Tensor x = F::vocab_parallel_embedding(ids, table, shard, group, options);
      EXPECT_EQ(x.sizes(), at::IntArrayRef({own, 1, 4}));
      const at::Tensor logits = F::vocab_parallel_output(x, table, {}, group, RankTokens::Own);
      EXPECT_EQ(logits.sizes(), at::IntArrayRef({tokens, shard.rows()}));
      const at::Tensor loss = F::vocab_parallel_cross_entropy(logits, ids.to(at::kLong), shard,
                                                              group, {}, RankTokens::Own);
      EXPECT_EQ(loss.isnan().item<bool>(), tokens == 0);
      loss.backward();
      ASSERT_TRUE(table.grad().defined());
      EXPECT_EQ(table.grad().sizes(), table.sizes());
    });
  }
}

// Logits of size 1e4 lose no more than ATen's log_softmax does, as the maximum goes first.
TEST(VocabParallelLoss, LargeAndMissingLogitsAreThoseOfATen) {
  const at::Tensor logits = at::randn({6, 10}) + 3e4;
  logits.select(1, 2).fill_(-std::numeric_limits<float>::infinity());
  logits.narrow(1, 5, 5).select(0, 1).fill_(-std::numeric_limits<float>::infinity());
  const at::Tensor targets = at::arange(6).masked_fill(at::arange(6) == 2, 3);
  const at::Tensor whole = logits.clone().requires_grad_();
  const at::Tensor expected = at::cross_entropy_loss(whole, targets.masked_fill(targets == 5, 4));
  expected.backward();
  testing::run_ranks(2, [&](const RankGroup& group) {
    const VocabShard shard = VocabShard::of(10, group.rank(), 2);
    const at::Tensor own = logits.narrow(1, shard.first, 5).clone().requires_grad_();
    const at::Tensor loss =
        F::vocab_parallel_cross_entropy(own, targets.masked_fill(targets == 5, 4), shard, group);
    EXPECT_TRUE(within(Op::RankSums, loss, expected));
    loss.backward();
    EXPECT_TRUE(within(Op::RankSums, own.grad(), whole.grad().narrow(1, shard.first, 5)));
  });
}

// Blocks of rows: more logits than fit into one.
TEST(VocabParallelLoss, ManyLogitsAreThoseOfATen) {
  const at::Tensor logits = at::randn({700, 601}), targets = at::randint(601, {700}, at::kLong);
  const at::Tensor whole = logits.clone().requires_grad_();
  const at::Tensor expected =
      at::cross_entropy_loss(whole, targets, {}, at::Reduction::Mean, -100, 0.1);
  expected.backward();
  testing::run_ranks(2, [&](const RankGroup& group) {
    const VocabShard shard = VocabShard::of(601, group.rank(), 2);
    const at::Tensor own = logits.narrow(1, shard.first, shard.rows()).clone().requires_grad_();
    const at::Tensor loss = F::vocab_parallel_cross_entropy(
        own, targets, shard, group, F::TokenCrossEntropyFuncOptions().label_smoothing(0.1));
    EXPECT_TRUE(within(Op::RankSums, loss, expected));
    loss.backward();
    EXPECT_TRUE(
        within(Op::RankSums, own.grad(), whole.grad().narrow(1, shard.first, shard.rows())));
  });
}

// Used twice in a graph, and run backward twice: the gradients add up.
TEST(VocabParallelGraph, DoubleUseAddsUp) {
  for (const auto tokens : {RankTokens::Same, RankTokens::Own}) {
    testing::run_ranks(2, [&](const RankGroup& group) {
      const VocabShard shard = VocabShard::of(7, group.rank(), 2);
      const at::Tensor ids = at::arange(4), table = at::ones({shard.rows(), 3}).requires_grad_();
      const auto options = F::VocabParallelEmbeddingFuncOptions().tokens(tokens);
      const at::Tensor x = F::vocab_parallel_embedding(ids, table, shard, group, options);
      const at::Tensor logits = F::vocab_parallel_output(x + x * x, table, {}, group, tokens);
      const at::Tensor loss =
          F::vocab_parallel_cross_entropy(logits, ids, shard, group, {}, tokens);
      (loss + loss).backward({}, /*retain_graph=*/true);
      const at::Tensor twice = table.grad().clone();
      table.mutable_grad().reset();
      loss.backward({}, /*retain_graph=*/true);
      loss.backward();
      EXPECT_TRUE(within(Op::RankSums, table.grad(), twice));
      EXPECT_GT(twice.abs().sum().item<double>(), 0.0);
      EXPECT_ERROR(loss.backward(), c10::Error, "backward through the graph a second time");
    });
  }
}

TEST(VocabParallelGraph, NothingIsRecordedWithoutGradMode) {
  testing::run_ranks(2, [](const RankGroup& group) {
    const at::NoGradGuard no_grad;
    const VocabShard shard = VocabShard::of(7, group.rank(), 2);
    const at::Tensor table = at::ones({shard.rows(), 3}).requires_grad_();
    const at::Tensor x = F::vocab_parallel_embedding(at::arange(4), table, shard, group);
    const at::Tensor logits = F::vocab_parallel_output(x, table, {}, group);
    EXPECT_FALSE(logits.requires_grad());
    EXPECT_FALSE(
        F::vocab_parallel_cross_entropy(logits, at::arange(4), shard, group).requires_grad());
  });
}

// Embedding and output layer can be differentiated twice: sum(x^3) has 6 x as second derivative.
TEST(VocabParallelGraph, TheRowsCanBeDifferentiatedTwice) {
  for (const auto tokens : {RankTokens::Same, RankTokens::Own}) {
    testing::run_ranks(2, [&](const RankGroup& group) {
      const VocabShard shard = VocabShard::of(4, group.rank(), 2);
      const at::Tensor table = at::full({2, 3}, 2.0, at::kDouble).requires_grad_();
      const at::Tensor x =
          F::vocab_parallel_embedding(at::arange(4), table, shard, group,
                                      F::VocabParallelEmbeddingFuncOptions().tokens(tokens));
      const auto first = torch::autograd::grad({x.pow(3).sum()}, {table}, {}, true, true)[0];
      const double times = tokens == RankTokens::Own ? 2.0 : 1.0;  // both processes use each row
      EXPECT_TRUE(within(Op::RankSums, first, at::full({2, 3}, times * 12.0, at::kDouble)));
      const auto second = torch::autograd::grad({first.sum()}, {table})[0];
      EXPECT_TRUE(within(Op::RankSums, second, at::full({2, 3}, times * 12.0, at::kDouble)));
    });
  }
}

TEST(VocabParallelGraph, SparseGradientsAreTheDenseOnes) {
  testing::run_ranks(2, [](const RankGroup& group) {
    const VocabShard shard = VocabShard::of(7, group.rank(), 2);
    const at::Tensor ids = at::tensor({5, 1, 5, 0}, at::kInt);
    std::vector<at::Tensor> gradients;
    for (const bool sparse : {false, true}) {
      const at::Tensor table = at::ones({shard.rows(), 3}).requires_grad_();
      const auto options = F::VocabParallelEmbeddingFuncOptions().padding_idx(-7).sparse(sparse);
      F::vocab_parallel_embedding(ids, table, shard, group, options).sum().backward();
      EXPECT_EQ(table.grad().is_sparse(), sparse);
      gradients.push_back(sparse ? table.grad().to_dense() : table.grad());
    }
    EXPECT_TRUE(bit_equal(gradients[0], gradients[1]));
    EXPECT_EQ(gradients[0].sum().item<double>(), group.rank() == 0 ? 3.0 : 6.0);
  });
}

}  // namespace
}  // namespace posenc
