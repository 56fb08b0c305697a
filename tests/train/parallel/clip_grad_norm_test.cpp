// clip_grad_norm() is PyTorch's. The clipping of Trainer, which is the same, is tested in
// train/clip_norm_test.cpp.

#include "posenc/train/clip_grad_norm.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/utils.h>

#include <limits>

#include "support/compare.h"

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

}  // namespace
}  // namespace posenc::testing
