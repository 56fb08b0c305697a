// Trainer with a model that the group splits: the loss is that of all processes, and clipping and
// checkpoints know the shards.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "io/support.h"
#include "parallel/collectives.h"
#include "parallel/split_model.h"
#include "posenc/io/safetensors.h"
#include "posenc/nn/token_embedding.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/trainer.h"
#include "support/compare.h"
#include "support/rank_threads.h"

namespace posenc::testing {
namespace {

using testing::run_ranks;

std::vector<TokenPair> pairs_of_all_lengths() {
  std::vector<TokenPair> pairs;
  for (int64_t i = 0; i < 12; ++i) {
    TokenPair pair{{1 + i % 3}, {1}};
    for (int64_t k = 0; k <= i % 4; ++k) pair.tgt.push_back(1 + (i + k) % 5);
    pairs.push_back(pair);
  }
  return pairs;
}

// The mean over all targets of all processes, and a term of each row of the split tensors. The same
// value on each process; its gradients are those of this process's targets and rows.
at::Tensor loss_of_all(const SplitModel& model, const PairBatch& batch, const RankGroup& group) {
  const auto labels = batch.tgt_labels();
  const auto own = labels.masked_select(labels.ne(0)).to(at::kFloat);
  auto count = at::tensor({static_cast<float>(own.numel())});
  parallel::all_reduce(group, count, "test");
  const auto part = (own.sum() * model.matrix.square().sum()) / count[0] +
                    (model.table.square().sum() + model.bias.square().sum()) * 3;
  auto all = part.detach().clone().view({1});
  parallel::all_reduce(group, all, "test");
  return part + (all[0] - part.detach());
}

std::vector<double> train(const RankGroup& group, const std::string& path,
                          const PairLoaderOptions& options = PairLoaderOptions().max_rows(6)) {
  SplitModel model(group);
  model.fill(0.5);
  FusedSGD optimizer(model.parameters(), FusedSGDOptions(0.3).momentum(0.5));
  PairLoader loader(pairs_of_all_lengths(), options);
  std::vector<double> losses;
  Trainer trainer(
      {model, &optimizer}, loader,
      [&](const PairBatch& batch) { return loss_of_all(model, batch, group); },
      TrainerOptions(6)
          .group(group)
          .global_loss(true)
          .clip_norm(0.4)
          .checkpoint(path)
          .report_every(1)
          .report([&](const TrainingProgress& progress) { losses.push_back(progress.loss); }));
  trainer.train();
  return losses;
}

TEST(SplitTraining, IsThatOfOneProcess) {
  const TempDir dir;
  const auto expected = train({}, dir / "whole");
  const auto whole = load_safetensors(dir / "whole");
  for (const int ranks : {2, 3}) {
    std::vector<double> found;
    run_ranks(ranks, [&](const RankGroup& group) {
      auto losses = train(group, dir / std::to_string(ranks));
      if (group.rank() == 0) found = losses;
    });
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i] / expected[i], 1, 1e-6) << i;
    const auto split = load_safetensors(dir / std::to_string(ranks));
    for (const auto& item : whole.tensors) {
      if (!item.value().is_floating_point()) continue;
      EXPECT_TRUE(within(Op::Training, split.tensors[item.key()], item.value())) << item.key();
    }
  }
}

TEST(SplitTraining, NeedsAPairForEachProcess) {
  const TempDir dir;
  run_ranks(3, [&](const RankGroup& group) {
    try {
      train(group, dir / "c", PairLoaderOptions().max_rows(2));
      ADD_FAILURE() << "trained";
    } catch (const c10::ValueError& error) {
      EXPECT_CONTAINS(error.what_without_backtrace(),
                      "[Trainer] a batch must have a pair for each process of a group that splits "
                      "tensors of the model. Got 2 pairs for 3 processes");
    }
  });
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(SplitTraining, OfTheSameTokensIsRefused) {
  run_ranks(2, [](const RankGroup& group) {
    TokenEmbedding model(TokenEmbeddingOptions(8, 4).group(group).rank_tokens(RankTokens::Same));
    FusedSGD optimizer(model->parameters(), FusedSGDOptions(0.3));
    PairLoader loader(pairs_of_all_lengths(), PairLoaderOptions().max_rows(6));
    bool called = false;
    Trainer trainer(
        {*model, &optimizer}, loader,
        [&](const PairBatch& batch) {
          called = true;
          return model->forward(batch.src).sum();
        },
        TrainerOptions(6).group(group).global_loss(true));
    EXPECT_ERROR(trainer.train(), c10::ValueError,
                 "needs rank_tokens(RankTokens::Own), since each process has its own share of the "
                 "batch. Got RankTokens::Same");
    EXPECT_FALSE(called);
  });
}

}  // namespace
}  // namespace posenc::testing
