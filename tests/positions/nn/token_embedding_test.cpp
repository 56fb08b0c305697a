#include "posenc/positions/nn/token_embedding.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "posenc/positions/nn/positional_encoding.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

using testing::bit_equal;

// The paper's scaling turns N(0, 1) weights into variance d_model. (The fourth notebook says 1.)
TEST(TokenEmbedding, SqrtDimScalingBringsTheVarianceToDModel) {
  torch::manual_seed(testing::seed(0));
  const int64_t dim = 512;
  TokenEmbedding tokens(TokenEmbeddingOptions(2000, dim).scale(Scale::SqrtDim));
  const auto variance = tokens->forward(torch::arange(2000)).var().item<double>();
  EXPECT_NEAR(variance / dim, 1.0, 0.01);
  EXPECT_NEAR(tokens->embedding->weight.var().item<double>(), 1.0, 0.01);
}

TEST(TokenEmbedding, FromPretrainedSharesTheWeightAndDrawsNoNumbers) {
  auto weight = torch::randn({5, 4}).requires_grad_(true);
  torch::manual_seed(testing::seed(4));
  auto tokens = TokenEmbedding::from_pretrained(weight);
  const auto next = torch::randn({3});
  torch::manual_seed(testing::seed(4));
  EXPECT_TRUE(bit_equal(next, torch::randn({3})));
  EXPECT_EQ(tokens->embedding->weight.data_ptr(), weight.data_ptr());
  EXPECT_FALSE(tokens->embedding->weight.requires_grad());
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_TRUE(TokenEmbedding::from_pretrained(weight, false)->embedding->weight.requires_grad());
  EXPECT_EQ(tokens->options.vocab_size(), 5);
}

TEST(TokenEmbedding, ACloneOfAPretrainedOneIsItsOwn) {
  const auto weight = torch::randn({5, 4});
  auto tokens = TokenEmbedding::from_pretrained(weight);
  auto copy = std::dynamic_pointer_cast<TokenEmbeddingImpl>(tokens->clone());
  ASSERT_TRUE(copy);
  EXPECT_NE(copy->embedding->weight.data_ptr(), weight.data_ptr());
  EXPECT_TRUE(bit_equal(copy->embedding->weight, weight));
}

TEST(TokenEmbedding, ThePaddingRowStartsAsZeros) {
  TokenEmbedding tokens(TokenEmbeddingOptions(5, 4).padding_idx(-1));
  EXPECT_TRUE(tokens->embedding->weight[4].eq(0).all().item<bool>());
  EXPECT_FALSE(tokens->embedding->weight[3].eq(0).all().item<bool>());
}

TEST(TokenEmbedding, FrozenWeightsGetNoGradient) {
  TokenEmbedding tokens(TokenEmbeddingOptions(5, 4).freeze(true));
  EXPECT_FALSE(tokens->forward(torch::tensor({1, 2})).requires_grad());
}

// In PyTorch on the CPU too, and by explicit positions.
TEST(TokenEmbedding, AGradientInHalfPrecisionIsRoundedAfterEachTerm) {
  for (const auto dtype : {torch::kBFloat16, torch::kHalf}) {
    TokenEmbedding tokens(3, 8);
    tokens->to(dtype);
    PositionalEncoding positions(8, 3);
    positions->to(dtype);
    positions->pe.requires_grad_();
    const auto python = tokens->embedding->weight.detach().clone().requires_grad_();
    const auto ids = torch::randint(3, {1, 900});
    const auto cotangent = torch::randn({1, 900, 8}).to(dtype);
    tokens->forward(ids).backward(cotangent);
    torch::embedding(python, ids).backward(cotangent);
    positions->forward(torch::zeros({1, 900, 8}, dtype), 0, ids).backward(cotangent);
    auto sums = torch::zeros({3, 8}, dtype);
    for (int64_t i = 0; i < 900; ++i) sums[ids[0][i].item<int64_t>()].add_(cotangent[0][i]);
    EXPECT_TRUE(bit_equal(tokens->embedding->weight.grad(), sums));
    EXPECT_TRUE(bit_equal(python.grad(), sums));
    EXPECT_TRUE(bit_equal(positions->pe.grad()[0], sums));
  }
}

TEST(TokenEmbeddingErrors, NameTheRuleAndTheValue) {
  EXPECT_ERROR(TokenEmbedding(0, 4), c10::ValueError,
               "[TokenEmbedding] vocab_size must be positive. Got 0");
  EXPECT_ERROR(TokenEmbedding(4, -1), c10::ValueError,
               "[TokenEmbedding] d_model must be positive. Got -1");
  EXPECT_ERROR(TokenEmbedding(TokenEmbeddingOptions(5, 4).padding_idx(5)), c10::ValueError,
               "padding_idx must lie in [-5, 5). Got 5");
  EXPECT_ERROR(TokenEmbedding::from_pretrained(torch::randn({5})), c10::ValueError,
               "must be a real matrix (vocab_size, d_model). Got Float [5]");
  EXPECT_ERROR(TokenEmbedding::from_pretrained(torch::ones({5, 4}, torch::kLong)), c10::ValueError,
               "Got Long [5, 4]");
  EXPECT_ERROR(TokenEmbedding::from_pretrained(torch::Tensor()), c10::ValueError,
               "Got an undefined tensor");
  TokenEmbedding tokens(5, 4);
  EXPECT_ERROR(tokens->forward(torch::tensor({{0, 5}})), c10::IndexError,
               "every id must lie in [0, vocab_size) = [0, 5). Got 5 at index [0, 1]");
}

}  // namespace
}  // namespace posenc
