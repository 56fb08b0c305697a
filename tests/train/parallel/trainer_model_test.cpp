// The training loop on several processes, here threads: what of a model changes beside its weights.
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/token_cross_entropy.h"
#include "posenc/train/trainer.h"
#include "support/compare.h"
#include "support/rank_threads.h"
#include "train/parallel/small_model.h"
#include "train/parallel/uneven_pairs.h"
#include "transformer/tiny.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using testing::run_ranks;

constexpr int64_t kModelSteps = 12;

class GroupModel : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, GroupModel, ::testing::Values(2, 3));

// A model of which a layer is never used, so that the places of gradients change after the first
// exchange, and which writes to a buffer in each forward.
struct Uneven {
  explicit Uneven(uint64_t seed)
      : model(small_model({}, seed)), optimizer(model->parameters(), 0.1) {}

  torch::Tensor loss(const PairBatch& batch) {
    const torch::NoGradGuard no_grad;
    auto mean = model->named_buffers()["mean"];
    mean.mul_(0.9).add_(batch.src.to(torch::kFloat).mean(), 0.01);
    const torch::AutoGradMode grad(true);
    return model->loss_sum(batch.src, batch.src, /*extra=*/true) / batch.src.numel() +
           model->hidden->bias.sum() * mean.sum();
  }
  Trainer trainer(const TrainerOptions& options, const RankGroup& group) {
    return Trainer(
        {*model, &optimizer}, loader, [this](const PairBatch& batch) { return loss(batch); },
        TrainerOptions(options).group(group));
  }

  std::shared_ptr<SmallModel> model;
  FusedSGD optimizer;
  PairLoader loader{uneven_pairs(), PairLoaderOptions().max_rows(7).seed(5)};
};

std::vector<std::unique_ptr<Uneven>> uneven(int count) {
  std::vector<std::unique_ptr<Uneven>> all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<Uneven>(1 + i));
  return all;
}

TEST_P(GroupModel, UnusedLayersAndBuffersAreResumedBitForBit) {
  const TempDir dir;
  const auto whole = uneven(GetParam()), parts = uneven(GetParam()), first = uneven(GetParam()),
             second = uneven(GetParam());
  const auto options = TrainerOptions(kModelSteps).checkpoint(dir / "c");
  run_ranks(GetParam(), [&](const RankGroup& group) {
    EXPECT_TRUE(whole[group.rank()]->trainer(TrainerOptions(kModelSteps), group).train());
    auto in_parts = parts[group.rank()]->trainer(TrainerOptions(kModelSteps), group);
    EXPECT_TRUE(in_parts.train(3));
    EXPECT_TRUE(in_parts.train());
    int64_t asked = 0;
    auto stopped = first[group.rank()]->trainer(
        TrainerOptions(options).stop([&] { return ++asked == 5; }), group);
    EXPECT_FALSE(stopped.train());
    auto resumed = second[group.rank()]->trainer(options, group);
    resumed.resume(dir / "c");
    EXPECT_EQ(resumed.step(), 5);
    EXPECT_TRUE(resumed.train());
  });
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto expected = all_bits(*whole[0]->model);
    EXPECT_TRUE(all_bits(*whole[i]->model) == expected) << "buffers are rank 0's";
    EXPECT_TRUE(all_bits(*parts[i]->model) == expected);
    EXPECT_TRUE(all_bits(*second[i]->model) == expected);
  }
}

TEST_P(GroupModel, BetweenCallsTheModelIsFree) {
  const auto ranks = uneven(GetParam());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    Uneven& own = *ranks[group.rank()];
    auto trainer = own.trainer(TrainerOptions(kModelSteps), group);
    EXPECT_TRUE(trainer.train(3));
    own.model->hidden->bias.sum().backward();  // the program's own
    own.model->zero_grad();
    auto other = own.trainer(TrainerOptions(2), group);
    EXPECT_TRUE(other.train());
    EXPECT_TRUE(trainer.train());
  });
  for (const auto& rank : ranks) {
    EXPECT_TRUE(all_bits(*rank->model) == all_bits(*ranks[0]->model));
  }
}

// The old optimiser holds the old layer's parameters, so that a run needs a new one.
TEST_P(GroupModel, ALayerMayBeReplacedBetweenRuns) {
  const auto ranks = uneven(GetParam());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    Uneven& own = *ranks[group.rank()];
    auto trainer = own.trainer(TrainerOptions(kModelSteps), group);
    EXPECT_TRUE(trainer.train(3));
    auto& hidden = own.model->hidden;
    hidden = own.model->replace_module("hidden", torch::nn::Linear(hidden->options));
    EXPECT_ERROR(trainer.train(1), c10::ValueError, "make a new optimiser after replacing a layer");
    FusedSGD optimizer(own.model->parameters(), 0.1);
    Trainer other(
        {*own.model, &optimizer}, own.loader,
        [&own](const PairBatch& batch) { return own.loss(batch); },
        TrainerOptions(kModelSteps).group(group));
    EXPECT_TRUE(other.train());
  });
  for (const auto& rank : ranks) {
    EXPECT_TRUE(all_bits(*rank->model) == all_bits(*ranks[0]->model));
  }
}

// The shares differ in length, and so do the tables that they make grow.
TEST_P(GroupModel, TablesMayGrowToDifferentLengths) {
  const TempDir dir;
  struct Growing {
    TokenAndPositionEmbedding embedding{
        TokenAndPositionEmbeddingOptions(9, 8, 4).grow(true).dropout(0.0)};
    torch::nn::Linear output{8, 9};
    torch::nn::Sequential model{embedding, output};
    FusedSGD optimizer{model->parameters(), 0.1};
    PairLoader loader{long_pair(), PairLoaderOptions().max_rows(3).seed(5)};

    static std::vector<TokenPair> long_pair() {
      auto pairs = uneven_pairs();
      pairs[4].tgt.resize(31, 3);
      return pairs;
    }
  };
  std::vector<std::unique_ptr<Growing>> ranks;
  for (int i = 0; i < GetParam(); ++i) ranks.push_back(std::make_unique<Growing>());
  std::vector<int64_t> rows(ranks.size());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    Growing& own = *ranks[group.rank()];
    Trainer trainer(
        {*own.model, &own.optimizer}, own.loader,
        [&](const PairBatch& batch) {
          return functional::token_cross_entropy(
              own.model->forward(batch.tgt_input()), batch.tgt_labels(),
              functional::TokenCrossEntropyFuncOptions().ignore_index(0));
        },
        TrainerOptions(20).checkpoint(dir / "c").checkpoint_every(1).group(group));
    EXPECT_TRUE(trainer.train(10));
    EXPECT_TRUE(trainer.train());
    const torch::Tensor& table = own.embedding->position_encoding->pe;
    rows[group.rank()] = table.size(1);
    EXPECT_LE(table.abs().max().item<double>(), 1.0);
  });
  EXPECT_GT(*std::max_element(rows.begin(), rows.end()), 29);
  EXPECT_LT(*std::min_element(rows.begin(), rows.end()), 29) << "some process has short shares";
  for (const auto& rank : ranks) {
    EXPECT_TRUE(bit_equal(rank->output->weight, ranks[0]->output->weight));
  }
}

}  // namespace
}  // namespace posenc::testing
