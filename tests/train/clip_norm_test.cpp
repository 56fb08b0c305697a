// TrainerOptions::clip_norm: the norm over all gradients of a step, dense and sparse, each once.

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

#include "posenc/train/clip_grad_norm.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/trainer.h"
#include "support/compare.h"
#include "transformer/tiny.h"

namespace posenc::testing {
namespace {

std::vector<TokenPair> some_pairs() { return {{{1, 1, 3}, {1, 2}}, {{3, 5, 5}, {1, 2}}}; }

// A table with a dense or sparse gradient, and a dense matrix: both kinds give the same step, from
// the norm over both. Rows repeat, so that the sparse gradient is not coalesced.
TEST(ClipNorm, ClipsSparseGradientsLikeDenseOnes) {
  const auto step = [](bool sparse, double clip) {
    torch::manual_seed(4);
    torch::nn::Embedding table(torch::nn::EmbeddingOptions(9, 4).sparse(sparse));
    torch::nn::Linear matrix(4, 2);
    torch::nn::Sequential both(table, matrix);
    const auto before =
        torch::cat({table->weight.flatten(), matrix->weight.flatten(), matrix->bias})
            .detach()
            .clone();
    FusedSGD optimizer(both->parameters(), 1.0);
    PairLoader loader(some_pairs());
    Trainer trainer(
        {*both, &optimizer}, loader,
        [&](const PairBatch& batch) {
          return 50 * matrix->forward(table->forward(batch.src)).square().sum();
        },
        TrainerOptions(1).clip_norm(clip));
    trainer.train();
    return torch::cat({table->weight.flatten(), matrix->weight.flatten(), matrix->bias}).detach() -
           before;
  };
  const auto dense = step(false, 0.5), sparse = step(true, 0.5);
  EXPECT_TRUE(within(Op::Training, sparse, dense));
  EXPECT_NEAR(dense.norm().item<double>(), 0.5, 1e-4);
  EXPECT_NEAR(sparse.norm().item<double>(), 0.5, 1e-4);
  for (const bool of_rows : {false, true}) {  // below the norm, nothing changes
    EXPECT_TRUE(within(Op::Training, step(of_rows, 1e9), step(false, /*clip=*/0.0)));
  }
}

TEST(ClipNorm, RefusesGradientsOfOtherLayouts) {
  torch::nn::Linear model(2, 3);
  FusedSGD optimizer(model->parameters(), 1.0);
  PairLoader loader(some_pairs());
  Trainer trainer(
      {*model, &optimizer}, loader,
      [&](const PairBatch&) {
        model->weight.mutable_grad() = torch::ones({3, 2}).to_sparse_csr();
        return model->bias.sum();
      },
      TrainerOptions(1).clip_norm(1.0));
  EXPECT_ERROR(trainer.train(), c10::TypeError,
               "[Trainer] gradients must be dense or sparse (COO). Got SparseCsr");
}

TEST(ClipNorm, CountsTiedMatricesOnce) {
  Transformer model(tiny(Tying::ThreeWay));
  double squares = 0.0;
  for (auto& parameter : model->parameters()) {
    parameter.mutable_grad() = torch::ones_like(parameter);
    squares += static_cast<double>(parameter.numel());
  }
  const double norm = torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-3);
  const int64_t tied = 3 * 9 * 8, once = 9 * 8;
  Transformer untied(tiny(Tying::None).src_vocab(9));
  int64_t all = 0;
  for (const auto& parameter : untied->parameters()) all += parameter.numel();
  EXPECT_EQ(static_cast<int64_t>(squares), all - tied + once);
}

// A layer that is registered twice is listed twice by parameters().
TEST(ClipNorm, CountsASharedLayerOnce) {
  torch::nn::Linear layer(2, 2);
  torch::nn::Sequential model(layer, layer);
  FusedSGD optimizer(model->parameters(), 1.0);
  PairLoader loader(some_pairs());
  const auto before = layer->weight.detach().clone();
  Trainer trainer(
      {*model, &optimizer}, loader, [&](const PairBatch&) { return 50 * layer->weight.sum(); },
      TrainerOptions(1).clip_norm(0.5));
  trainer.train();
  EXPECT_NEAR((layer->weight.detach() - before).norm().item<double>(), 0.5, 1e-4);
}

// A norm of 65,536 is infinite in float16, and would make every gradient 0. The sum of its squares,
// powers of two, is exact in any order.
TEST(ClipNorm, SumsFloat16InFloat32) {
  torch::nn::Linear model(torch::nn::LinearOptions(256, 256).bias(false));
  model->to(torch::kHalf);
  model->weight.mutable_grad() = torch::full({256, 256}, 256.0, torch::kHalf);
  EXPECT_EQ(clip_grad_norm(model, 1.0), 65536.0);
  EXPECT_TRUE(torch::allclose(model->weight.grad().to(torch::kFloat),
                              torch::full({256, 256}, 1.0 / 256), 1e-3));
}

// A gradient that no optimiser clears would grow, count in the norm, and be lost on resume.
TEST(ClipNorm, ClipsByTheGradientsOfThisStepAlone) {
  torch::nn::Linear model(2, 2);
  FusedSGD optimizer(std::vector<torch::Tensor>{model->bias}, 1.0);
  PairLoader loader(some_pairs());
  Trainer trainer(
      {*model, &optimizer}, loader,
      [&](const PairBatch&) { return model->weight.sum() + model->bias.sum(); },
      TrainerOptions(3).clip_norm(1.0));
  for (int64_t step = 1; step <= 3; ++step) {
    const auto before = model->bias.detach().clone();
    trainer.train(step);
    EXPECT_NEAR((before - model->bias.detach())[0].item<double>(), 1 / std::sqrt(6.0), 1e-5);
  }
}

}  // namespace
}  // namespace posenc::testing
