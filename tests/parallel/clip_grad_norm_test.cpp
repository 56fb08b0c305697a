// clip_grad_norm(): PyTorch's without shards, the whole model's norm with them. The clipping of
// Trainer, which is the same, is tested in train/clip_norm_test.cpp.

#include "posenc/parallel/clip_grad_norm.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "posenc/core/state_dict_traits.h"
#include "support/compare.h"
#include "support/rank_threads.h"

namespace posenc::testing {
namespace {

// By the norm plus 1e-6, which shows where the norm is as small.
TEST(ClipGradNorm, DividesAsPyTorchDoes) {
  for (const double size : {1e-7, 1e-3, 10.0}) {
    torch::nn::Linear ours(5, 3), theirs(5, 3);
    for (size_t i = 0; i < 2; ++i) {
      const auto gradient = torch::randn_like(ours->parameters()[i]) * size;
      ours->parameters()[i].mutable_grad() = gradient.clone();
      theirs->parameters()[i].mutable_grad() = gradient.clone();
    }
    const double norm = clip_grad_norm(ours, size / 3);
    EXPECT_EQ(norm, torch::nn::utils::clip_grad_norm_(theirs->parameters(), size / 3));
    EXPECT_TRUE(bit_equal(ours->weight.grad(), theirs->weight.grad())) << size;
    EXPECT_TRUE(bit_equal(ours->bias.grad(), theirs->bias.grad())) << size;
  }
}

TEST(ClipGradNorm, OfNoGradientIsZero) {
  torch::nn::Linear model(5, 3);
  EXPECT_EQ(clip_grad_norm(model, 1.0), 0.0);
  EXPECT_FALSE(model->weight.grad().defined());
}

TEST(ClipGradNorm, RefusesANormThatIsNotPositive) {
  torch::nn::Linear model(5, 3);
  for (const double norm : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_ERROR(clip_grad_norm(model, norm), c10::ValueError, "max_norm must be positive. Got ");
}

TEST(ClipGradNorm, RefusesGradientsOfOtherLayouts) {
  torch::nn::Linear model(2, 3);
  model->weight.mutable_grad() = torch::ones({3, 2}).to_sparse_csr();
  EXPECT_ERROR(clip_grad_norm(model, 1.0), c10::TypeError,
               "[clip_grad_norm] gradients must be dense or sparse (COO). Got SparseCsr");
}

// Some rows of a matrix, whose gradient is given, and a vector that all processes have.
struct SplitMatrix : torch::nn::Module, StateDictTraits {
  SplitMatrix(const torch::Tensor& gradient, int64_t first, int64_t last, bool sparse)
      : first(first) {
    rows = register_parameter("rows", torch::zeros({last - first, gradient.size(1)}));
    both = register_parameter("both", torch::zeros({4}));
    rows.mutable_grad() = gradient.slice(0, first, last).clone();
    if (sparse) rows.mutable_grad() = rows.grad().to_sparse(1);
    both.mutable_grad() = torch::arange(4, torch::kFloat);
  }
  std::vector<ShardedName> sharded_names() const override { return {{name, first, 10}}; }
  int64_t first;
  std::string name = "rows";
  torch::Tensor rows, both;
};

TEST(ClipGradNorm, SumsTheSquaresOfShardsOverTheRanks) {
  const auto gradient = torch::randn({10, 3});
  const double whole =
      std::sqrt((gradient.square().sum() + torch::arange(4).square().sum()).item<double>());
  for (const int size : {1, 2, 3, 4}) {
    std::vector<double> norms(static_cast<size_t>(size));
    std::vector<torch::Tensor> both(static_cast<size_t>(size));
    testing::run_ranks(size, [&](const RankGroup& group) {
      const auto rank = static_cast<size_t>(group.rank());
      // Rank 0 has all rows, the others an empty gradient, and rank 1 none at all.
      const int64_t first = group.rank() == 0 ? 0 : 10;
      SplitMatrix model(gradient, first, 10, /*sparse=*/group.rank() == 0);
      if (group.rank() == 1) model.rows.mutable_grad().reset();
      norms[rank] = clip_grad_norm(model, 0.5, group);
      both[rank] = model.both.grad();
      if (group.rank() > 0) return;
      EXPECT_TRUE(within(Op::Gradient, model.rows.grad().to_dense(), gradient * (0.5 / whole)));
    });
    EXPECT_NEAR(norms[0], whole, allowance(Op::Gradient, torch::kFloat, whole));
    EXPECT_TRUE(within(Op::Gradient, both[0], torch::arange(4, torch::kFloat) * (0.5 / whole)));
    for (size_t rank = 1; rank < both.size(); ++rank) {
      EXPECT_EQ(norms[rank], norms[0]);
      EXPECT_TRUE(bit_equal(both[rank], both[0]));
    }
  }
}

// Rows on every rank, of which none sees the others': a norm of its own would scale them apart.
TEST(ClipGradNorm, ScalesAllShardsByOneFactor) {
  const auto gradient = torch::randn({10, 3}) * torch::arange(1, 11).unsqueeze(1);
  std::vector<torch::Tensor> parts(3);
  testing::run_ranks(3, [&](const RankGroup& group) {
    const int64_t bounds[] = {0, 4, 8, 10}, rank = group.rank();
    SplitMatrix model(gradient, bounds[rank], bounds[rank + 1], /*sparse=*/false);
    clip_grad_norm(model, 1.0, group);
    parts[static_cast<size_t>(rank)] = model.rows.grad();
  });
  const double whole =
      std::sqrt((gradient.square().sum() + torch::arange(4).square().sum()).item<double>());
  EXPECT_TRUE(within(Op::Gradient, torch::cat(parts), gradient / whole));
}

TEST(ClipGradNorm, RefusesShardsThatAreNotRegistered) {
  SplitMatrix model(torch::ones({10, 3}), 0, 10, /*sparse=*/false);
  model.name = "row";
  EXPECT_ERROR(clip_grad_norm(model, 1.0), c10::ValueError,
               "sharded_names() must be names of registered tensors. Got row");
}

}  // namespace
}  // namespace posenc::testing
