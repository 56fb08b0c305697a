// A Transformer and its training on a device whose memory the host cannot read: the CPU's results,
// and nothing waits for the device.

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "posenc/positions/nn/token_embedding.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/sparse_adam.h"
#include "posenc/train/token_cross_entropy.h"
#include "posenc/train/trainer.h"
#include "posenc/transformer/transformer.h"
#include "support/compare.h"
#include "support/test_device/test_device.h"

namespace posenc {
namespace {

using testing::DeviceWaits;
using testing::Op;
using testing::test_device;
using testing::within;

TransformerOptions small() {
  return TransformerOptions(11, 11)
      .d_model(8)
      .num_heads(2)
      .num_encoder_layers(1)
      .num_decoder_layers(1)
      .d_ff(12)
      .max_len(16)
      .dropout(0.0)
      .tie(Tying::ThreeWay);
}

torch::Tensor loss_of(Transformer& model, const torch::Tensor& src, const torch::Tensor& tgt) {
  const auto logits = model->forward(src, tgt.slice(1, 0, -1), AttentionMask::key_padding(src != 0),
                                     AttentionMask::causal());
  return functional::token_cross_entropy(
      logits, tgt.slice(1, 1),
      functional::TokenCrossEntropyFuncOptions().label_smoothing(0.1).ignore_index(0));
}

class TransformerOnADevice : public ::testing::Test {
 protected:
  TransformerOnADevice() {
    const auto copy = model->clone(test_device());
    there = Transformer(std::dynamic_pointer_cast<TransformerImpl>(copy));
  }
  const torch::Tensor src = torch::tensor({{3, 4, 5, 2}, {6, 7, 0, 0}});
  const torch::Tensor tgt = torch::tensor({{1, 8, 9, 2}, {1, 10, 2, 0}});
  const torch::Tensor src_there = src.to(test_device()), tgt_there = tgt.to(test_device());
  Transformer model{small()}, there{nullptr};
};

TEST_F(TransformerOnADevice, GivesTheResultsOfTheCpuAndWaitsForNothing) {
  const auto want = loss_of(model, src, tgt);
  want.backward();
  const DeviceWaits waits;
  const auto got = loss_of(there, src_there, tgt_there);
  got.backward();
  EXPECT_EQ(waits.count(), 0);
  EXPECT_TRUE(within(Op::Layers, got.cpu(), want));
  const auto gradients = there->named_parameters();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(within(Op::Gradient, gradients[item.key()].grad().cpu(), item.value().grad()))
        << item.key();
  }
}

// Steps of an optimiser on both devices.
template <typename Optimizer, typename Options>
void train_both(Transformer& model, Transformer& there, const Options& options,
                const std::function<torch::Tensor(Transformer&)>& loss) {
  Optimizer ours(there->parameters(), options), theirs(model->parameters(), options);
  std::optional<DeviceWaits> waits;
  for (int i = 0; i < 4; ++i) {
    for (auto* const optimizer : {&ours, &theirs}) optimizer->zero_grad();
    loss(model).backward();
    theirs.step();
    if (i == 1) waits.emplace();  // the first step makes the state
    loss(there).backward();
    ours.step();
  }
  EXPECT_EQ(waits->count(), 0);
  const auto others = there->named_parameters();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(within(Op::Training, others[item.key()].cpu(), item.value())) << item.key();
  }
}

TEST_F(TransformerOnADevice, IsTrainedAsOnTheCpu) {
  const auto loss = [&](Transformer& of) {
    return of.ptr() == there.ptr() ? loss_of(of, src_there, tgt_there) : loss_of(of, src, tgt);
  };
  // A key's bias has no gradient but rounding, which a small eps would make a step of.
  train_both<FusedAdam>(model, there, FusedAdamOptions().lr(1e-2).eps(1e-2), loss);
  train_both<FusedSGD>(model, there, FusedSGDOptions().lr(1e-2).momentum(0.9), loss);
}

TEST(SparseAdamOnADevice, UpdatesTheRowsThatTheCpuUpdates) {
  TokenEmbedding model(TokenEmbeddingOptions(9, 4).sparse(true));
  TokenEmbedding there(std::dynamic_pointer_cast<TokenEmbeddingImpl>(model->clone(test_device())));
  SparseAdam ours(there->parameters(), SparseAdamOptions().lr(0.1)),
      theirs(model->parameters(), SparseAdamOptions().lr(0.1));
  const auto ids = torch::tensor({{1, 3, 1}, {8, 0, 3}});
  for (int i = 0; i < 3; ++i) {
    ours.zero_grad();
    theirs.zero_grad();
    model->forward(ids).pow(2).sum().backward();
    there->forward(ids.to(test_device())).pow(2).sum().backward();
    ours.step();
    theirs.step();
  }
  EXPECT_TRUE(within(Op::Training, there->embedding->weight.cpu(), model->embedding->weight));
}

// Only a report reads the loss.
TEST_F(TransformerOnADevice, TheTrainerWaitsAtReportsOnly) {
  FusedAdam adam(there->parameters(), FusedAdamOptions().lr(1e-3));
  PairLoader loader({{{3, 4, 5}, {1, 6, 2}}, {{7, 8}, {1, 9, 10, 2}}},
                    PairLoaderOptions().max_rows(1));
  std::optional<DeviceWaits> waits;
  int64_t before_report = -1;
  const auto loss = [&](const PairBatch& batch) {
    const auto up = [](const torch::Tensor& ids) {
      return ids.to(test_device(), ids.scalar_type(), /*non_blocking=*/true);
    };
    return loss_of(there, up(batch.src), up(batch.tgt));
  };
  Trainer trainer({*there, &adam}, loader, loss,
                  TrainerOptions(8).clip_norm(0.5).report_every(8).stop([&] {
                    if (waits) before_report = waits->count();
                    if (!waits) waits.emplace();  // after the first step, which makes the state
                    return false;
                  }));
  EXPECT_TRUE(trainer.train());
  EXPECT_EQ(before_report, 0);
  EXPECT_GT(waits->count(), 0);  // the report's
}

}  // namespace
}  // namespace posenc
