#include "posenc/positions/functional/encoder_embeddings.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "support/compare.h"
#include "support/seed.h"

namespace posenc::functional {
namespace {

using embeddings::Norm;
using embeddings::Projection;
using testing::bit_equal;
using testing::message_of;

using EmbeddingsWeights = EncoderEmbeddingsWeights;
using EmbeddingsOptions = EncoderEmbeddingsFuncOptions;

EmbeddingsWeights narrow_weights() {
  EmbeddingsWeights weights;
  weights.tokens = torch::randn({9, 4});
  weights.positions = torch::randn({6, 4});
  return weights;
}
torch::Tensor few_ids() { return torch::tensor({{3, 1, 5}, {2, 8, 1}}); }
std::string func_refusal(const EmbeddingsWeights& weights, const EmbeddingsOptions& options = {}) {
  return message_of([&] { encoder_embeddings(few_ids(), weights, options); });
}

TEST(EncoderEmbeddingsFunction, ProjectsWhereItIsTold) {
  torch::manual_seed(testing::seed(0));
  EmbeddingsWeights weights = narrow_weights();
  weights.norm_weight = torch::randn({4});
  weights.norm_bias = torch::randn({4});
  weights.projection_weight = torch::randn({5, 4});
  const auto sum = weights.tokens.index({few_ids()}) + weights.positions.slice(0, 0, 3);
  const auto normed = at::layer_norm(sum, {4}, weights.norm_weight, weights.norm_bias, 1e-12);
  const auto project = [&](const torch::Tensor& x) {
    return at::linear(x, weights.projection_weight);
  };
  EXPECT_TRUE(bit_equal(encoder_embeddings(few_ids(), weights), project(normed)));
  weights.positions = torch::randn({6, 5});
  weights.norm_weight = torch::randn({5});
  weights.norm_bias = torch::Tensor();
  const auto tokens = project(weights.tokens.index({few_ids()}));
  const auto expected =
      at::layer_norm(tokens + weights.positions.slice(0, 0, 3), {5}, weights.norm_weight, {}, 1e-5);
  const auto how = EmbeddingsOptions().projection(Projection::Tokens).layer_norm_eps(1e-5);
  EXPECT_TRUE(bit_equal(encoder_embeddings(few_ids(), weights, how), expected));
}

TEST(EncoderEmbeddingsFunction, ScalesAreRoundedAsNamed) {
  EmbeddingsWeights weights;
  weights.tokens = torch::randn({9, 10});
  const auto rows = weights.tokens.index({few_ids()});
  const auto of = [&](const Scale& scale, embeddings::ScaleRounding rounding) {
    return encoder_embeddings(few_ids(), weights,
                              EmbeddingsOptions().scale(scale).scale_rounding(rounding));
  };
  EXPECT_TRUE(bit_equal(of(50.596, embeddings::ScaleRounding::None), rows * 50.596));
  EXPECT_TRUE(bit_equal(of(50.596, embeddings::ScaleRounding::ToBFloat16), rows * 50.5));
  weights.tokens = weights.tokens.to(torch::kBFloat16);
  const auto halves = weights.tokens.index({few_ids()});
  EXPECT_TRUE(bit_equal(of(50.596, embeddings::ScaleRounding::ToWeight), halves * 50.5));
}

TEST(EncoderEmbeddingsFunction, RefusesShapesThatDoNotMatch) {
  const auto with = [](auto change) {
    EmbeddingsWeights weights = narrow_weights();
    change(weights);
    return func_refusal(weights);
  };
  EXPECT_EQ(func_refusal({}), "[EncoderEmbeddings] tokens must be (V, E). Got no tensor");
  EXPECT_EQ(with([](auto& w) { w.tokens = torch::ones({9}); }),
            "[EncoderEmbeddings] tokens must be (V, E). Got [9]");
  EXPECT_EQ(with([](auto& w) { w.positions = torch::ones({6, 5}); }),
            "[EncoderEmbeddings] positions must be (rows, 4). Got [6, 5]");
  EXPECT_EQ(with([](auto& w) { w.token_types = torch::ones({4}); }),
            "[EncoderEmbeddings] token_types must be (rows, 4). Got [4]");
  EXPECT_EQ(with([](auto& w) { w.task_types = torch::ones({2, 3}); }),
            "[EncoderEmbeddings] task_types must be (rows, 4). Got [2, 3]");
  EXPECT_EQ(with([](auto& w) { w.norm_weight = torch::ones({5}); }),
            "[EncoderEmbeddings] norm_weight must be (4). Got [5]");
  EXPECT_EQ(with([](auto& w) { w.norm_bias = torch::ones({5}); }),
            "[EncoderEmbeddings] norm_bias must be (4). Got [5]");
  EXPECT_EQ(with([](auto& w) { w.projection_weight = torch::ones({5, 3}); }),
            "[EncoderEmbeddings] projection_weight must be (D, 4). Got [5, 3]");
  EXPECT_EQ(with([](auto& w) {
              w.projection_weight = torch::ones({5, 4});
              w.projection_bias = torch::ones({4});
            }),
            "[EncoderEmbeddings] projection_bias must be (5). Got [4]");
}

TEST(EncoderEmbeddingsFunction, RefusesOptionsThatDoNotFit) {
  const auto rows = [](at::IntArrayRef sizes) { return torch::zeros(sizes, torch::kLong); };
  EmbeddingsWeights weights = narrow_weights();
  const auto refusal = [&](const EmbeddingsOptions& options) {
    return func_refusal(weights, options);
  };
  EXPECT_EQ(refusal(EmbeddingsOptions().token_type_ids(rows({2, 3}))),
            "[EncoderEmbeddings] these embeddings have no token types. Got token_type_ids [2, 3]");
  EXPECT_EQ(refusal(EmbeddingsOptions().task_type_ids(rows({2, 3}))),
            "[EncoderEmbeddings] these embeddings have no task types. Got task_type_ids [2, 3]");
  EXPECT_EQ(refusal(EmbeddingsOptions().position_ids(rows({3})).offset(2)),
            "[EncoderEmbeddings] position_ids and an offset exclude each other. Got 2");
  EXPECT_EQ(
      refusal(EmbeddingsOptions().position_ids(rows({2}))),
      "[EncoderEmbeddings] position_ids must be (L), (1, L) or (B, L) for ids [2, 3]. Got [2]");
  EXPECT_EQ(
      message_of([&] {
        encoder_embeddings(few_ids()[0], weights, EmbeddingsOptions().position_ids(rows({1, 3})));
      }),
      "[EncoderEmbeddings] position_ids must be (L), (1, L) or (B, L) for ids [3]. Got [1, 3]");
  EXPECT_EQ(refusal(EmbeddingsOptions().offset(-1)),
            "[EncoderEmbeddings] offset must not be negative. Got -1");
  EXPECT_EQ(refusal(EmbeddingsOptions().offset(4)),
            "[EncoderEmbeddings] the table has 6 positions. Got 3 tokens from position 4");
  EXPECT_EQ(refusal(EmbeddingsOptions().dropout(1.0)),
            "[EncoderEmbeddings] dropout must lie in [0, 1). Got 1");
  EXPECT_EQ(refusal(EmbeddingsOptions().padding_idx(9)),
            "[EncoderEmbeddings] padding_idx must lie in [-9, 9). Got 9");
  weights.token_types = torch::ones({2, 4});
  EXPECT_EQ(refusal(EmbeddingsOptions().token_type_ids(rows({3, 2}))),
            "[EncoderEmbeddings] token_type_ids must have the shape of the ids [2, 3]. Got [3, 2]");
  weights.positions = torch::Tensor();
  EXPECT_EQ(refusal(EmbeddingsOptions().position_ids(rows({3}))),
            "[EncoderEmbeddings] these embeddings have no positions. Got position_ids [3]");
}

}  // namespace
}  // namespace posenc::functional
