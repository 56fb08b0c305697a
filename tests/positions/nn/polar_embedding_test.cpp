#include "posenc/positions/nn/polar_embedding.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <numbers>

#include "support/compare.h"
#include "support/devices.h"
#include "support/seed.h"

namespace posenc::polar_embedding_test {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;
using Options = PolarEmbeddingOptions;

class Polar : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(Polar);

// apply_polar_pos_emb() of x-transformers, written out.
torch::Tensor turned(const torch::Tensor& x, const torch::Tensor& angles) {
  const auto magnitude = torch::log1p(torch::exp(x.to(torch::kFloat)));
  return torch::cat({magnitude * torch::cos(angles), magnitude * torch::sin(angles)}, -1);
}

torch::Tensor frequencies(int64_t dim, double base) {
  return torch::pow(base, torch::arange(dim, torch::kFloat) / dim).reciprocal();
}

TEST_P(Polar, IsTheFormula) {
  torch::manual_seed(testing::seed(0));
  for (const int64_t dim : {1, 6, 32, 70}) {
    PolarEmbedding module(Options(dim, 3).base(500.0));
    const torch::NoGradGuard no_grad;
    module->learned_bias.copy_(torch::randn({3, 1, dim}) * 4 - 3);
    module->to(device());
    EXPECT_TRUE(bit_equal(module->inv_freq.cpu(), frequencies(dim, 500.0)));
    const auto q = torch::randn({2, 6, 5, dim}).to(device());
    const auto k = torch::randn({2, 3, 5, dim}).to(device());
    const auto ids = torch::randint(0, 900, {2, 5}, torch::kLong).to(device());
    const auto [polar_q, polar_k] = module->forward(q, k, 0, ids);
    const auto angles =
        (ids.unsqueeze(-1).to(torch::kFloat) * module->inv_freq).unsqueeze(1);  // (B, 1, L, D)
    const auto bias = module->learned_bias.clamp(-2 * std::numbers::pi, 0);
    EXPECT_LT((polar_q - turned(q, angles)).abs().max().item<double>(), 1e-5);
    EXPECT_LT((polar_k - turned(k, angles + bias)).abs().max().item<double>(), 1e-5);
    EXPECT_EQ(polar_k.sizes(), (std::vector<int64_t>{2, 3, 5, 2 * dim}));
  }
}

TEST_P(Polar, AnOffsetIsTheFirstPosition) {
  PolarEmbedding module(Options(8, 2).bias_uniform_init(true));
  module->to(device());
  const auto q = torch::randn({2, 5, 8}).to(device());  // without a batch
  const auto ids = torch::arange(7, 12).to(device());
  const auto by_ids = module->forward(q, q, 0, ids), by_offset = module->forward(q, q, 7);
  EXPECT_TRUE(bit_equal(std::get<0>(by_ids), std::get<0>(by_offset)));
  EXPECT_TRUE(bit_equal(std::get<1>(by_ids), std::get<1>(by_offset)));
  EXPECT_FALSE(std::get<1>(module->forward(q, {}, 7)).defined());
  EXPECT_TRUE(bit_equal(std::get<1>(module->forward({}, q, 7)), std::get<1>(by_offset)));
}

// Scores depend on the distance alone.
TEST_P(Polar, ScoresOfMovedSequencesAreEqual) {
  PolarEmbedding module(Options(16, 2).bias_uniform_init(true));
  module->to(device());
  const auto q = torch::randn({1, 2, 9, 16}).to(device()),
             k = torch::randn({1, 2, 9, 16}).to(device());
  const auto scores = [&](int64_t offset) {
    const auto [polar_q, polar_k] = module->forward(q, k, offset);
    return polar_q.matmul(polar_k.transpose(-1, -2));
  };
  EXPECT_LT((scores(0) - scores(40)).abs().max().item<double>(), 1e-3);
  EXPECT_GT((scores(0) - q.matmul(k.transpose(-1, -2))).abs().max().item<double>(), 0.1);
}

TEST_P(Polar, HalfPrecisionIsRoundedOnce) {
  PolarEmbedding module(Options(6, 2).bias_uniform_init(true));
  module->to(device());
  const auto x = torch::randn({2, 2, 5, 6}).to(device());
  for (const auto dtype : {torch::kHalf, torch::kBFloat16}) {
    const auto low = x.to(dtype);
    const auto [q, k] = module->forward(low, low);
    const auto [wide_q, wide_k] = module->forward(low.to(torch::kFloat), low.to(torch::kFloat));
    EXPECT_TRUE(bit_equal(q, wide_q.to(dtype)));
    EXPECT_TRUE(bit_equal(k, wide_k.to(dtype)));
  }
}

TEST(Polar, TheBiasHasAGradientInsideItsBounds) {
  PolarEmbedding module(3, 1);
  {
    const torch::NoGradGuard no_grad;
    module->learned_bias.copy_(torch::tensor({-7.0, -1.0, 0.5}).view({1, 1, 3}));
  }
  auto k = torch::randn({1, 4, 3}).requires_grad_();
  const auto out = std::get<1>(module->forward({}, k));
  out.slice(-1, 3).sum().backward();  // the sines
  const auto gradient = module->learned_bias.grad().flatten();
  EXPECT_EQ(gradient[0].item<double>(), 0.0);
  EXPECT_NE(gradient[1].item<double>(), 0.0);
  EXPECT_EQ(gradient[2].item<double>(), 0.0);
  // d sum(softplus(k) sin(a)) / dk = sigmoid(k) sin(a)
  const auto bias = module->learned_bias.detach().clamp(-2 * std::numbers::pi, 0);
  const auto angles = torch::arange(4, torch::kFloat).unsqueeze(-1) * module->inv_freq + bias;
  const auto expected = torch::sigmoid(k.detach()) * angles.sin();
  EXPECT_LT((k.grad() - expected).abs().max().item<double>(), 1e-6);
}

TEST(Polar, TheBiasIsZeroOrDrawn) {
  EXPECT_TRUE(bit_equal(PolarEmbedding(4, 3)->learned_bias.detach(), torch::zeros({3, 1, 4})));
  const auto drawn = PolarEmbedding(Options(64, 8).bias_uniform_init(true))->learned_bias.detach();
  EXPECT_LT(drawn.max().item<double>(), 0.0);
  EXPECT_GT(drawn.min().item<double>(), -2 * std::numbers::pi);
  EXPECT_LT((drawn.mean().item<double>() + std::numbers::pi), 0.3);
  EXPECT_GT((drawn.mean().item<double>() + std::numbers::pi), -0.3);
}

TEST(PolarErrors, NameTheRuleAndTheValue) {
  EXPECT_ERROR(PolarEmbedding(0, 2), c10::ValueError,
               "[PolarEmbedding] dim must be positive. Got 0");
  EXPECT_ERROR(PolarEmbedding(4, 0), c10::ValueError, "heads must be positive. Got 0");
  EXPECT_ERROR(PolarEmbedding(Options(4, 2).base(0.0)), c10::ValueError,
               "base must be positive and finite. Got 0");
  PolarEmbedding module(4, 2);
  const auto x = torch::zeros({1, 2, 3, 4});
  EXPECT_ERROR(module->forward({}, {}), c10::ValueError, "q or k must be a tensor");
  EXPECT_ERROR(module->forward(torch::zeros({1, 2, 3, 5}), x), c10::ValueError,
               "q and k must be (H, L, D) or (B, H, L, D), D = 4. Got [1, 2, 3, 5]");
  EXPECT_ERROR(module->forward(x, torch::zeros({1, 3, 3, 4})), c10::ValueError,
               "k must have 2 heads. Got [1, 3, 3, 4]");
  EXPECT_ERROR(module->forward(x, torch::zeros({1, 2, 5, 4})), c10::ValueError,
               "angles must be (L, D), or broadcastable to x. Got [2, 3, 4] for [1, 2, 5, 4]");
  EXPECT_ERROR(module->forward(x, x, -1), c10::ValueError, "offset must not be negative");
  EXPECT_ERROR(module->forward(x, x, 2, torch::arange(3)), c10::ValueError,
               "position_ids are absolute: offset must be 0 beside them. Got 2");
  EXPECT_ERROR(module->forward(x, x, 0, torch::zeros({3})), c10::TypeError,
               "position_ids must be integers. Got Float");
  EXPECT_ERROR(module->forward(x, x, 0, torch::tensor({0, 1, -2})), c10::ValueError,
               "positions must lie in [0, 2^31). Got -2");
  EXPECT_ERROR(module->forward(x, x, 0, torch::zeros({1, 1, 3}, torch::kLong)), c10::ValueError,
               "position_ids must be (L) or (B, L). Got [1, 1, 3]");
  EXPECT_ERROR(module->forward(x.to(torch::kLong), {}), c10::TypeError,
               "x and angles must be floating-point. Got Long and Float");
  EXPECT_ERROR(functional::polar_embedding(torch::zeros({3, 4}), torch::zeros({3, 4})),
               c10::ValueError, "x must be (H, L, D) or (B, H, L, D). Got [3, 4]");
  EXPECT_ERROR(functional::polar_angles(torch::arange(3), torch::zeros({2, 2})), c10::ValueError,
               "inv_freq must be (D). Got [2, 2]");
}

}  // namespace
}  // namespace posenc::polar_embedding_test
